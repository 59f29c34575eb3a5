"""The ops of pullback compared with torch's, op by op."""
