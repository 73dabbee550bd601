"""Cue tables of Chinese: the words by which `heuristic` recognises a fact, each with the category of the fact.

If you change a table, other facts are found: raise `heuristic.VERSION` too.
"""

import re

CUES = (
    ("identity", "是|叫|姓|名叫|今年[0-9一二三四五六七八九十]+岁|属[鼠牛虎兔龙蛇马羊猴鸡狗猪]"),
    ("place", "(?:现在|一直|目前)?(?:住在|来自|搬到|搬去|出生在|出生于|生活在|定居|老家在|家在|位于)"),
    (
        "education",
        "(?:毕业于|就读于|从.{2,12}毕业|在.{2,12}(?:上学|读书|读研|读博|学习|留学)|学过|主修|考上|考过|学了)",
    ),
    ("work", "(?:在.{2,12}(?:工作|上班|实习|任职|教书)|从事|负责|任职于|创办|开了一?家|供职于|当过)"),
    ("family", "(?:结婚|离婚|单身|订婚|嫁给|娶了)"),
    (
        "preference",
        "(?:最|很|特别|非常|一直|更|比较)?(?:喜欢|爱吃|爱喝|爱看|爱听|热爱|偏爱|讨厌|不喜欢|不爱|讨厌|害怕|习惯)",
    ),
    ("possession", "(?:有[一两三四五六七八九十0-9]|养了?[一两三四五六七八九十0-9]|买了|拥有)"),
    ("ability", "(?:会说|会弹|会拉|会做|会写|会开|会游泳|擅长|精通)"),
    ("health", "(?:对.{1,8}过敏|不吃|不能吃|不喝|戒了|患有)"),
    ("plan", "(?:打算|计划|准备|决定|想去|想当|想成为|想学|梦想是)"),
    ("event", "(?:去过|参加过?了?|获得过?了?|拿过?了?|赢得|看过|读过|写过|见过)"),
)
"""The words after the subject of a fact: a category, and a regular expression."""

OWN = re.compile(
    "我(?:的)?(?P<what>名字|生日|工作|专业|爱好|职业|家乡|老家|家|妈妈|母亲|妈|爸爸|父亲|爸|哥哥|姐姐|弟弟|妹妹|爷爷|奶奶|外公|外婆"
    "|儿子|女儿|孩子|丈夫|老公|妻子|老婆|男朋友|女朋友|男友|女友|朋友|同事|老师|导师|室友|狗|猫|公司|学校)(?P<rest>.+)"
)
"""Something that belongs to the speaker, and a statement about it."""

OPENERS = re.compile(
    "(?:其实|而且|另外|还有|所以|因为|但是|但|不过|对了|哦|嗯|啊|哈哈|是的|对|好的|当时|后来|以前|之前|小时候|从小)"
    "[，, ]*"
)
"""Words before the subject that are left out of a fact."""
UNCLEAR = re.compile("[你您他她它这那咱哪]|我们|什么|怎么|为何|为什么|多少|几[个时点]|如此|一样|自己说|东西")
"""Words whose meaning depends on earlier sentences, or on the addressee."""
HEDGES = re.compile(
    "如果|要是|还是|假如|可能|也许|大概|好像|似乎|应该|或许|恐怕|说不定|吗|呢|吧|么$|是不是|会不会|不知道|不记得|忘|开玩笑|觉得|以为"
)
"""Words of uncertainty."""
NOT_A_FACT = re.compile(
    "是(?:的|啊|吗|说|想|在|真|认真|不|要|会|这|那|因为|为了|怕|来|去|时候|有|没|很|谁|个|一个人)"
    "|有一?(?:点|些|次|天|种|件|个问题)|叫.{0,2}$"
)
"""Words after the subject in phrases that do not say anything lasting."""
