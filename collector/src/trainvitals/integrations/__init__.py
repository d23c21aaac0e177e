"""One module for each trainer. Each imports its own framework, so import only the one you use:

from trainvitals.integrations.transformers import TrainVitalsCallback
"""
