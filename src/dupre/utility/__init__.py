"""The utility of a coalition: trained models, utilities without a model, other tools' games."""
