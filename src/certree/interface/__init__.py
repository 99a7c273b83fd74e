"""Where certree meets who calls it: what is taken, what is kept, and what is shown.

`arrays` and `signatures` check what functions are given, `fitted` keeps what a fit has made, `extras`
imports what not everybody has, `progress` and `notebook` show work and answers, `whole` writes files.
"""
