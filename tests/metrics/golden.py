"""Metrics read off Keras 3.15.1."""

#: Batches of (y_true, y_pred, sample_weight).
BINARY = [
    (
        [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]],
        [[0.1, 0.3, 0.7], [0.2, 0.6, 0.4], [0.9, 0.05, 0.5], [0.3, 0.8, 0.6]],
        None,
    ),
    (
        [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]],
        [[0.8, 0.2, 0.4], [0.5, 0.1, 0.9], [0.3, 0.6, 0.7], [0.15, 0.95, 0.25]],
        [1.0, 0.0, 2.0, 0.5],
    ),
]
SPARSE = [
    ([0, 2, 1, 1], [[0.1, 0.3, 0.7], [0.2, 0.6, 0.4], [0.9, 0.05, 0.5], [0.3, 0.8, 0.6]], None),
    (
        [[1], [2], [0], [1]],
        [[0.8, 0.2, 0.4], [0.5, 0.1, 0.9], [0.3, 0.6, 0.7], [0.15, 0.95, 0.25]],
        [1.0, 0.0, 2.0, 0.5],
    ),
]
CLASSES = [([0, 1, 2, 2], [0, 1, 1, 2], [1, 2, 3, 4]), ([0, 0], [0, 2], None)]

#: (class, arguments, batches, result)
METRICS = [
    ("Accuracy", {}, CLASSES, 0.6666667),
    ("BinaryAccuracy", {}, BINARY, 0.6666667),
    ("BinaryAccuracy", {"threshold": 0.3}, BINARY, 0.7111111),
    ("CategoricalAccuracy", {}, BINARY, 0.4),
    ("SparseCategoricalAccuracy", {}, SPARSE, 0.2),
    ("TopKCategoricalAccuracy", {"k": 2}, BINARY, 0.6666667),
    ("SparseTopKCategoricalAccuracy", {"k": 2}, SPARSE, 0.3333333),
    ("Precision", {}, BINARY, 0.8571429),
    ("Precision", {"thresholds": [0.2, 0.65]}, BINARY, [0.6944444, 0.7692308]),
    ("Precision", {"top_k": 2}, BINARY, 0.7666667),
    ("Precision", {"class_id": 1, "top_k": 2, "thresholds": 0.4}, BINARY, 0.8888889),
    ("Recall", {}, BINARY, 0.6),
    ("Recall", {"class_id": 2}, BINARY, 0.6153846),
    ("AUC", {"curve": "ROC", "summation_method": "interpolation"}, BINARY, 0.6355556),
    (
        "AUC",
        {"curve": "ROC", "summation_method": "interpolation", "multi_label": True, "label_weights": [1.0, 2.0, 3.0]},
        BINARY,
        0.6072162,
    ),
    ("AUC", {"curve": "ROC", "summation_method": "interpolation", "num_thresholds": 5}, BINARY, 0.6266667),
    ("AUC", {"curve": "ROC", "summation_method": "minoring"}, BINARY, 0.6177778),
    (
        "AUC",
        {"curve": "ROC", "summation_method": "minoring", "multi_label": True, "label_weights": [1.0, 2.0, 3.0]},
        BINARY,
        0.5953114,
    ),
    ("AUC", {"curve": "ROC", "summation_method": "minoring", "num_thresholds": 5}, BINARY, 0.5333334),
    ("AUC", {"curve": "ROC", "summation_method": "majoring"}, BINARY, 0.6533334),
    (
        "AUC",
        {"curve": "ROC", "summation_method": "majoring", "multi_label": True, "label_weights": [1.0, 2.0, 3.0]},
        BINARY,
        0.6191209,
    ),
    ("AUC", {"curve": "ROC", "summation_method": "majoring", "num_thresholds": 5}, BINARY, 0.72),
    ("AUC", {"curve": "PR", "summation_method": "interpolation"}, BINARY, 0.6989552),
    (
        "AUC",
        {"curve": "PR", "summation_method": "interpolation", "multi_label": True, "label_weights": [1.0, 2.0, 3.0]},
        BINARY,
        0.7764557,
    ),
    ("AUC", {"curve": "PR", "summation_method": "interpolation", "num_thresholds": 5}, BINARY, 0.7194667),
    ("AUC", {"curve": "PR", "summation_method": "minoring"}, BINARY, 0.6053616),
    (
        "AUC",
        {"curve": "PR", "summation_method": "minoring", "multi_label": True, "label_weights": [1.0, 2.0, 3.0]},
        BINARY,
        0.4600843,
    ),
    ("AUC", {"curve": "PR", "summation_method": "minoring", "num_thresholds": 5}, BINARY, 0.5371429),
    ("AUC", {"curve": "PR", "summation_method": "majoring"}, BINARY, 0.7602913),
    (
        "AUC",
        {"curve": "PR", "summation_method": "majoring", "multi_label": True, "label_weights": [1.0, 2.0, 3.0]},
        BINARY,
        0.8253968,
    ),
    ("AUC", {"curve": "PR", "summation_method": "majoring", "num_thresholds": 5}, BINARY, 0.7847619),
    ("AUC", {"thresholds": [0.3, 0.7]}, BINARY, 0.6488888),
    ("AUC", {"from_logits": True}, BINARY, 0.6355556),
    ("FBetaScore", {"average": None, "beta": 2.0}, BINARY, [0.3125, 0.4444444, 0.5172414]),
    ("FBetaScore", {"average": None, "beta": 0.5, "threshold": 0.5}, BINARY, [0.4347825, 0.8695651, 0.8888888]),
    ("FBetaScore", {"average": "micro", "beta": 2.0}, BINARY, 0.4444444),
    ("FBetaScore", {"average": "micro", "beta": 0.5, "threshold": 0.5}, BINARY, 0.7894736),
    ("FBetaScore", {"average": "macro", "beta": 2.0}, BINARY, 0.4247286),
    ("FBetaScore", {"average": "macro", "beta": 0.5, "threshold": 0.5}, BINARY, 0.7310788),
    ("FBetaScore", {"average": "weighted", "beta": 2.0}, BINARY, 0.4452028),
    ("FBetaScore", {"average": "weighted", "beta": 0.5, "threshold": 0.5}, BINARY, 0.7764894),
    ("F1Score", {}, BINARY, [0.3636363, 0.5333333, 0.6315789]),
    ("TruePositives", {"thresholds": [0.1, 0.5]}, BINARY, [14.0, 9.0]),
    ("FalsePositives", {"thresholds": [0.1, 0.5]}, BINARY, [6.5, 1.5]),
    ("TrueNegatives", {"thresholds": [0.1, 0.5]}, BINARY, [1.0, 6.0]),
    ("FalseNegatives", {"thresholds": [0.1, 0.5]}, BINARY, [1.0, 6.0]),
    ("MeanIoU", {"num_classes": 3}, CLASSES, 0.5222222),
    ("MeanIoU", {"num_classes": 3, "ignore_class": 2}, CLASSES, 0.5555556),
    ("IoU", {"num_classes": 3, "target_class_ids": [0, 2]}, CLASSES, 0.5833334),
    (
        "BinaryIoU",
        {"target_class_ids": [1], "threshold": 0.25},
        [([0, 1, 0, 1], [0.1, 0.25, 0.4, 0.7], None)],
        0.6666666,
    ),
    (
        "OneHotMeanIoU",
        {"num_classes": 3},
        [
            (
                [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]],
                [[0.1, 0.3, 0.7], [0.2, 0.6, 0.4], [0.9, 0.05, 0.5], [0.3, 0.8, 0.6]],
                None,
            )
        ],
        0.2777778,
    ),
    (
        "OneHotIoU",
        {"num_classes": 3, "target_class_ids": [0]},
        [
            (
                [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]],
                [[0.1, 0.3, 0.7], [0.2, 0.6, 0.4], [0.9, 0.05, 0.5], [0.3, 0.8, 0.6]],
                None,
            )
        ],
        0.3333333,
    ),
    ("MeanSquaredError", {}, BINARY, 0.2718334),
    ("RootMeanSquaredError", {}, BINARY, 0.5213764),
    ("MeanAbsoluteError", {}, BINARY, 0.4588889),
    ("MeanAbsolutePercentageError", {}, BINARY, 134444500.0),
    ("MeanSquaredLogarithmicError", {}, BINARY, 0.1184019),
    ("LogCoshError", {}, BINARY, 0.1256157),
    ("CosineSimilarity", {}, BINARY, 0.7389265),
    ("Hinge", {}, BINARY, 0.7922222),
    ("SquaredHinge", {}, BINARY, 0.8740555),
    ("CategoricalHinge", {}, BINARY, 0.45),
    ("KLDivergence", {}, BINARY, 1.619985),
    ("Poisson", {}, BINARY, 1.016662),
    ("BinaryCrossentropy", {}, BINARY, 0.7994649),
    ("CategoricalCrossentropy", {}, BINARY, 2.331544),
    ("SparseCategoricalCrossentropy", {}, SPARSE, 1.744952),
]
