"""The four defences of the verifier's judgement: each a study that anybody can run again."""
