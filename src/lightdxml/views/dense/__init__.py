"""The paper's two views: classifier and nearness of embeddings, which the cycle trains together."""
