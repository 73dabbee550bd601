"""Words that are capitalised because a sentence begins with them, in lower case.

Words that are mainly names ("Mark", "Will", "Max") are not among them.
"""

_ENGLISH = """
a about above according across after afterwards again against ah aha alas all almost along already also although
always am amazing among an and another any anyone anything are aren't around as aside ask at aw away awesome aww
because been before behind being below beneath besides between beyond both btw but by bye can can't cannot check
cheers compare congrats congratulations could couldn't currently damn define describe despite did didn't do does
doesn't don't down during each eh either else even ever every everyone everything except explain few finally find
first for formerly from further gee get give gosh gotcha ha had hah haha has hasn't have haven't he he'd he'll he's
hello hence her here here's hers herself hey hi him himself his hmm hooray how how's however hurray i i'd i'll i'm
i've if in indeed instead into is isn't it it'd it'll it's its itself just last lastly lately later least less let
let's like list lol many maybe me meanwhile mine more moreover most much must my myself nah near nearly neither never
nevertheless next no nobody none nope nor not nothing now of off often oh ok okay on once one only onto oof ooh oops
or other others otherwise ouch our ours ourselves out outside over own perhaps phew please previously probably rather
really recall recently remember same second see several she she'd she'll she's should shouldn't show similarly since
so some somebody someone something sometimes soon still such summarise summarize tell than thank thanks that that's
the their theirs them themselves then there there's therefore these they they'd they'll they're they've third this
those though through throughout thus thx to today together tomorrow tonight too toward towards ugh uh um under unless
unlike until up upon us usually very via was wasn't we we'd we'll we're we've welcome were weren't what what's
whatever when whenever where where's whereas wherever whether which while who who's whoa whoever whom whose why with
within without woah won't woohoo would wouldn't wow yay yeah yep yes yesterday yet yikes yo you you'd you'll you're
you've your yours yourself yup
assistant user
monday tuesday wednesday thursday friday saturday sunday
january february july september october november december
"""
_COMMON = """
able absolutely accepting actually adding adopting agreed alright apparently appreciate appreciating asking attending
attention awful bad based basically beautiful becoming believe best bet better big bit blue book books brilliant bring
bringing broken brought build building built busy buy buying call called calling came care caring celebrating certain
certainly challenges change changes changing cheaper checking cherish children choose choosing clean clear clearly
close combining come comes coming common completely confidence connecting consider considering continue cook cooking
cool cooler correct crazy create created creating creativity creepy curious customers cute dance dancing data days
deal dealing decided deep definitely delicious different difficult doing done dreams drink drinking drive driving
early easy eat eating embracing emotional empty enjoy enjoyed enjoying enough especially events eventually everyday
exactly excellent excited exciting exercise expect expensive experience exploring express expressing extra family
fantastic far fast favorite favourite feel feeling feels felt fewer finding fine fixed focus focusing follow following
food forget found free fresh friends fun funny gained getting giving glad go goes going gonna good got gotta great
growing guess guidance half hang happy hard hate having heading health hear heard hearing heartbreaking held help
helped helping highly hold holding home honestly hope hopefully hoping hot huge ideas imagine important impressed
impressive incredible information inspiring interested interesting investing issues juggling keep keeping kids kind
knew know knowing known large leaving left lessons letting life light literally little live living long longer look
looked looking looks losing lost lots love loved lovely loving low lucky made mainly make makes making managed
marketing matters mean meant meet meeting meetings mental met mind money morning mostly motivated moving music natural
naturally nature need needed needs networking nice nights normally note noted notes obviously old open opening
opinions orders ordinary overall owning painting parenting parking part partly paying payment people perfect
personally pets photos pics place places plan planning plans play playing plenty plus point possibly practice
practicing prefer prefers pretty prices priority problem problems progress project projects proud pushing put putting
questions quick quickly quiet quite rain raised reach read reading ready real realising realizing reducing
relationship relationships relax relaxing remenber reminder reminds remote requires research researching resilience
respect rest right running sad safe said sales saving saw saying school seeing seems sell selling send sending
seriously set setbacks setting shall share shared sharing short showed showing shows simple simply sleep sleeping slow
slowly small snow somewhere sorry sound sounds speaking special spending spent stand start started starting stay
staying step steps stick sticking stories strange strength stress strong struggling students study studying stuff
success super support supporting supposed sure surely surrounding take taken takes taking talk talked talking tasks
taste teaching teamwork telling terrible thankful thankfully things think thinking thoughts thrilled time times tiny
tired took top totally tough tracking training travel traveling travelling treat tried truly trust trying turned turns
understanding understood unfortunately uniting use used useful users using valuable values visit visited visiting
volunteering wait waiting walk walking wanna want wanted wants warm watch watched watching water way ways weather well
went whole winter wish wishing wonderful wondering words work worked working works worried worse worth write writing
wrong years yoga young
"""
_GERMAN = """
aber als also am auch auf aus bei bis da dann das dass dein deine dem den denn der des deshalb die dies diese dieser
dieses doch du ein eine einem einen einer es euer für gestern hat hatte heute hier ich ihm ihn ihr ihre im immer in ins
ist ja jetzt kein keine mein meine mit morgen nach nein nicht noch nur ob oder ohne sein seine seit sie sind so über um
und uns unser unter vom von vor wann war waren warum was weil welche welcher wem wen wenn wer wie wir wo zu zum zur
"""
_ROMANCE = """
ao aos au aujourd'hui aussi aux avec ayer c'est ce ces cet cette como comme con cuando da dans das de del della depuis
des di do dos du e el ella elle elles en entre era es esa ese est esta este et fue hier hoy il ils je la las le les lo
los lui ma mais mi mon na no nos notre nous o où para parce pas però perché pero por porque pour pourquoi puis qu'est
quand que quel quelle quem qui quién quando sa se según si sin sono su sua sur te tu um uma un una une vos votre vous y
yo él
"""

FUNCTION_WORDS = frozenset(f"{_ENGLISH} {_GERMAN} {_ROMANCE}".split())
"""Dropped in front of a name, wherever it stands."""
COMMON_WORDS = frozenset(_COMMON.split())
"""Words that begin sentences of conversations and notes. One that stands alone at the beginning of a sentence is no
name."""
ACRONYMS = frozenset({"asap", "btw", "fyi", "imo", "lol", "ok", "omg", "tbh"})
"""Dropped in capitals too; other words in capitals are names: AT, US, WHO."""
ARTICLES = frozenset({"a", "an", "the"})
"""Dropped from the beginning of quoted names too: "The Hobbit" and Hobbit are one entity."""
TITLES = frozenset({"dr", "jr", "mr", "mrs", "ms", "prof", "sr", "st"})
"""Abbreviations whose full stop does not end a name."""
