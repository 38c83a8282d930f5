"""The ordinary frame of a websocket, without ceremony: fifty a second pass each way for every
call.
"""
