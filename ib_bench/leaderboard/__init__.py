"""The leaderboard: numbers of different people in one table, none of which is taken on trust.

`tracks` says what is asked, `submission` how an answer is packed and read, `check` what is true of
it, `ranking` who comes first, `board` how it is shown.
"""
