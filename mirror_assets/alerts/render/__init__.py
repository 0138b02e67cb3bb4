"""Messages as each kind of receiver wants them: plain JSON, Slack, Teams, PagerDuty, e-mail. Pure functions."""
