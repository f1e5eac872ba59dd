"""The one place for wire formats: what a model is asked, what it says, and how it fails."""
