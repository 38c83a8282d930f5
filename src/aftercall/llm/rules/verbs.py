"""What people tell an agent to do, as patterns of verbs."""

from aftercall.llm.rules.vocabulary import alternatives, vocabulary

_ACTS = vocabulary(
    """
    add adjust amend apply arrange ask assign block book bring bump buy call cancel change chase check clear close
    collect contact copy correct create credit deactivate delete deliver disable dispatch double-check draft email
    e-mail enable enrol enroll enter escalate exchange expedite extend fetch file fill find fix flag forward freeze get
    give have hold include inform install invite invoice issue keep leave let list lock log look mail make mark mend message
    move note notify open order organise organize pack page pass pause pay phone pick place plan post postpone prepare
    print process pull push put raise rebook reorder re-order refill refund register release remind remove renew repair
    replace report request reschedule reserve reset resend return ring run save schedule send set ship shift sign sort
    start stop submit subscribe suspend swap switch take tell text top track transfer translate turn unblock unlock
    unsubscribe update upgrade downgrade warn wire write jot double waive credit telephone drop redo wake feed clean wash empty
    pencil squeeze alert restock complain query end terminate hire rent swap claim dispute appeal withdraw donate join
    stick pop chuck water
    """
)
IMPERATIVE = alternatives(_ACTS)

# With "can I", "I need to", "I'd like to": things one does through whoever answers the phone,
# not alone.
_THROUGH_US = vocabulary(
    """
    add amend arrange book bring buy cancel change collect correct downgrade drop enrol enroll exchange extend file fix
    get have join leave log make mend move open order pause place postpone push put rebook refill register renew reorder re-
    order rent replace report request reschedule reserve reset return schedule see send set sign speak stop swap switch
    talk transfer unsubscribe update upgrade bump close hire dispute increase decrease raise lower shift come bring
    claim submit opt withdraw donate pick
    """
)
# With "I have to", only what nobody does alone; with "I need to" also some plainer verbs where
# their object tells.
_SERVICE = vocabulary(
    """
    amend arrange book cancel change claim close correct dispute downgrade enrol enroll exchange extend file order pause
    postpone rebook refill register renew reorder re-order rent replace report request reschedule reserve reset return
    schedule switch transfer unsubscribe update upgrade withdraw move swap add hire donate
    """
)
_PLAINER = (
    "see (?:dr|doctor|the (?:doctor|dentist|vet|nurse)|a |an |someone|somebody)|make (?:a|an"
    "|another) |get (?:a|an|another|"
    "some|my|the|it|that|this|new|him|her|one) |have (?:a|an|my|the|it|someone|somebody) "
    "|set up|sign up|put (?:in|it|my|a|"
    r"an|the|through)|"
    r"bring (?:my|the|it|him|her|in|\w+)|come (?:in|and)|send (?:a|an|some|my|the|flowers|it"
    "|this|back)|leave a (?:message|"
    "note)|drop off|speak|talk (?:to|with)|stop|opt|open (?:a|an)|lower|raise|increase"
    "|decrease|shift|push|bump|join|"
    r"pick up (?:a|an|my)"
)
SERVICE = alternatives(_SERVICE)
NEEDED = rf"(?:{SERVICE}\b|{_PLAINER})"
THROUGH_US = alternatives(_THROUGH_US)
