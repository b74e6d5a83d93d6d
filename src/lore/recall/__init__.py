"""Recall: find the items in memory that answer a question, and rank them.

`answer.recall` shows the steps: `question.parse`, then `ranking.rank` (gather the candidates,
describe them by features, score them), `ranking.apply_policy`, `ranking.select_relevant` and
`presentation.present`. Searches for sessions and hits for prompts take the same steps.
"""
