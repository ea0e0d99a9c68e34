"""Losses read off Keras 3.15.1."""

YB = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
Q = [[0.1, 0.3, 0.7], [0.2, 0.6, 0.4], [0.9, 0.05, 0.5], [0.3, 0.8, 0.6]]
R = [[0.8, 0.2, 0.4], [0.5, 0.1, 0.9], [0.3, 0.6, 0.7], [0.15, 0.95, 0.25]]
ONE_HOT = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
LOGITS = [[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]]

#: (class, arguments, y_true, y_pred, sample_weight, loss)
LOSSES = [
    ("MeanSquaredError", {"reduction": "none"}, YB, Q, None, [0.33, 0.1866667, 0.3541667, 0.23]),
    ("MeanAbsoluteError", {"reduction": "none"}, YB, Q, None, [0.5, 0.4, 0.4833333, 0.4333333]),
    (
        "MeanAbsolutePercentageError",
        {"reduction": "none"},
        YB,
        Q,
        None,
        [100000000.0, 66666700.0, 483333300.0, 43.33333],
    ),
    ("MeanSquaredLogarithmicError", {"reduction": "none"}, YB, Q, None, [0.1508855, 0.07008373, 0.1929195, 0.08215594]),
    ("Huber", {"reduction": "none"}, YB, Q, None, [0.165, 0.09333333, 0.1770833, 0.115]),
    ("LogCosh", {"reduction": "none"}, YB, Q, None, [0.149504, 0.08931893, 0.1603981, 0.1083639]),
    ("CosineSimilarity", {"reduction": "none"}, YB, Q, None, [-0.7364597, -0.9449111, -0.0, -0.9401022]),
    ("Hinge", {"reduction": "none"}, YB, Q, None, [0.8333333, 0.7333333, 1.483333, 0.4333333]),
    ("SquaredHinge", {"reduction": "none"}, YB, Q, None, [0.8633332, 0.6533334, 2.320833, 0.23]),
    ("CategoricalHinge", {"reduction": "none"}, YB, Q, None, [0.5, 0.2, 1.9, 0.0]),
    ("KLDivergence", {"reduction": "none"}, YB, Q, None, [2.659259, 1.427115, -4.456005e-06, 1.937942]),
    ("Poisson", {"reduction": "none"}, YB, Q, None, [1.253086, 0.8757054, 0.4833333, 1.212647]),
    ("BinaryCrossentropy", {"reduction": "none"}, YB, Q, None, [1.005312, 0.5500866, 1.015675, 0.6459807]),
    ("BinaryFocalCrossentropy", {"reduction": "none"}, YB, Q, None, [0.6430985, 0.1401742, 0.6795029, 0.2268682]),
    ("CategoricalCrossentropy", {"reduction": "none"}, YB, Q, None, [2.84988, 1.791759, -0.0, 3.529827]),
    ("CategoricalFocalCrossentropy", {"reduction": "none"}, YB, Q, None, [0.5103746, 0.1653897, 0.0, 0.4559284]),
    ("MeanSquaredError", {"reduction": "sum"}, R, Q, [1.0, 0.0, 2.0, 0.5], 0.6929166),
    ("MeanSquaredError", {"reduction": "mean"}, R, Q, [1.0, 0.0, 2.0, 0.5], 0.1732292),
    ("MeanSquaredError", {"reduction": "mean_with_sample_weight"}, R, Q, [1.0, 0.0, 2.0, 0.5], 0.1979762),
    ("MeanSquaredError", {"reduction": "none"}, R, Q, [1.0, 0.0, 2.0, 0.5], [0.1966667, 0.0, 0.4683333, 0.02791667]),
    ("MeanSquaredError", {"reduction": "sum_over_batch_size"}, R, Q, [1.0, 0.0, 2.0, 0.5], 0.1732292),
    ("Dice", {}, YB, Q, None, 0.4377511),
    ("Dice", {"axis": (1,)}, YB, Q, None, 0.5338666),
    ("Tversky", {"alpha": 0.2, "beta": 0.7, "axis": (1,)}, YB, Q, None, 0.4365962),
    ("Huber", {"delta": 0.2}, R, Q, None, 0.05395833),
    ("CosineSimilarity", {"axis": 0}, R, Q, None, -0.6967488),
    ("Hinge", {}, [[-1.0, 1.0]], [[0.5, 0.5]], None, 1.0),
    ("CategoricalCrossentropy", {"from_logits": True, "label_smoothing": 0.1}, ONE_HOT, LOGITS, [2.0, 0.5], 5.371378),
    (
        "CategoricalCrossentropy",
        {"label_smoothing": 0.1},
        ONE_HOT,
        [[0.05, 0.95, 0.0], [0.1, 0.8, 0.1]],
        None,
        1.459136,
    ),
    ("CategoricalCrossentropy", {"axis": 0, "from_logits": True}, ONE_HOT, LOGITS, None, 2.048359),
    ("SparseCategoricalCrossentropy", {}, [1, 2], [[0.05, 0.95, 0.0], [0.1, 0.8, 0.1]], [2.0, 0.5], 0.6269396),
    ("SparseCategoricalCrossentropy", {}, [[1], [0]], [[0.2, 0.3, 0.1], [1.0, 2.0, 3.0]], None, 1.242453),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, [1, 2], LOGITS, None, 3.618488),
    (
        "SparseCategoricalCrossentropy",
        {"ignore_class": 2},
        [1, 2],
        [[0.05, 0.95, 0.0], [0.1, 0.8, 0.1]],
        None,
        0.05129331,
    ),
    ("SparseCategoricalCrossentropy", {"ignore_class": -1, "from_logits": True}, [1, -1], LOGITS, [1.0, 2.0], 5.132845),
    ("BinaryCrossentropy", {"from_logits": True, "label_smoothing": 0.2}, ONE_HOT, LOGITS, None, 1.453211),
    (
        "BinaryFocalCrossentropy",
        {"from_logits": True, "apply_class_balancing": True, "label_smoothing": 0.1, "gamma": 1.5},
        ONE_HOT,
        LOGITS,
        None,
        0.5842605,
    ),
    (
        "CategoricalFocalCrossentropy",
        {"from_logits": True, "gamma": 1.5, "alpha": [0.1, 0.2, 0.3], "label_smoothing": 0.1},
        ONE_HOT,
        LOGITS,
        None,
        0.7224922,
    ),
]
