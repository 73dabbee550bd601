"""Capitalised words at the beginning of a sentence that do not belong to the name behind them, in lower case.

They are dropped only in front of a name, so a word that is a name as well ("may", "will", "mark") is not among them.
"""

_ENGLISH = """
a about above according across after afterwards again against all almost along already also although always am among
an and another any anyone anything are aren't around as aside ask at away because been before behind being below
beneath besides between beyond both but by can can't cannot check compare could couldn't currently define describe
despite did didn't do does doesn't don't down during each either else even ever every everyone everything except
explain few finally find first for formerly from further get give had has hasn't have haven't he he'd he'll he's hello
hence her here here's hers herself hey hi him himself his how how's however i i'd i'll i'm i've if in indeed instead
into is isn't it it'd it'll it's its itself just last lastly lately later least less let let's like list many maybe me
meanwhile mine more moreover most much must my myself near nearly neither never nevertheless next no nobody none nor
not nothing now of off often oh ok okay on once one only onto or other others otherwise our ours ourselves out outside
over own perhaps please previously probably rather really recall recently remember same second see several she she'd
she'll she's should shouldn't show similarly since so some somebody someone something sometimes soon still such
summarise summarize tell than thank thanks that that's the their theirs them themselves then there there's therefore
these they they'd they'll they're they've third this those though through throughout thus to today together tomorrow
tonight too toward towards under unless unlike until up upon us usually very via was wasn't we we'd we'll we're we've
were weren't what what's whatever when whenever where where's whereas wherever whether which while who who's whoever
whom whose why with within without won't would wouldn't yes yesterday yet you you'd you'll you're you've your yours
yourself
assistant user
monday tuesday wednesday thursday friday saturday sunday
january february july september october november december
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
ARTICLES = frozenset({"a", "an", "the"})
"""Dropped from the beginning of quoted names too: "The Hobbit" and Hobbit are one entity."""
TITLES = frozenset({"dr", "jr", "mr", "mrs", "ms", "prof", "sr", "st"})
"""Abbreviations whose full stop does not end a name."""
