"""A-law to μ-law, byte by byte: European legs bring the one, everything above a wire speaks the other."""


def _to_linear(alaw: int) -> int:
    """One A-law byte as a 16-bit sample (ITU-T G.711: every other bit is sent inverted)."""
    bits = alaw ^ 0x55
    segment = bits >> 4 & 0x07
    magnitude = ((bits & 0x0F) << 4) + 8
    if segment:
        magnitude = magnitude + 0x100 << segment - 1
    return magnitude if bits & 0x80 else -magnitude


def _to_mulaw(sample: int) -> int:
    magnitude = min(abs(sample), 32_635) + 0x84
    segment = magnitude.bit_length() - 8
    sign = 0x80 if sample < 0 else 0
    return ~(sign | segment << 4 | magnitude >> segment + 3 & 0x0F) & 0xFF


ALAW_TO_MULAW = bytes(_to_mulaw(_to_linear(byte)) for byte in range(256))
