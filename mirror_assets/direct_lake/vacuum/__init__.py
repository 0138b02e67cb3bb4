"""What VACUUM would delete, who still needs it, and for how long to keep it. Nothing here deletes anything."""
