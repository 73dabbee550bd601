"""Words of every script: splitting, folding, stop words, languages and stems.

words        the words of a text, with their spans in it
stop_words   function words by language, and the language of a text in Latin letters
stems        the terms of a word
"""
