"""The target side: what a landing zone looks like, and how parts are published into it exactly once."""
