"""MNIST with a small convolutional network: load, train, evaluate, save.

python examples/mnist.py --epochs 3
"""

import argparse

import magmadnn_py as mdnn
from magmadnn_py import layers

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data", help="folder with the four idx files; by default they are looked for and downloaded")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--samples", type=int, help="train on the first so many images only")
parser.add_argument("--output", default="convnet.keras", help="where the model is saved")
arguments = parser.parse_args()

(x_train, y_train), (x_test, y_test) = mdnn.datasets.mnist.load_data(arguments.data)
x_train, y_train = x_train[: arguments.samples, ..., None].astype("float32") / 255, y_train[: arguments.samples]
x_test = x_test[..., None].astype("float32") / 255

model = mdnn.Sequential(
    [
        mdnn.Input((28, 28, 1)),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(2),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(2),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=128, epochs=arguments.epochs, validation_split=0.1)
print(model.evaluate(x_test, y_test, return_dict=True))
model.save(arguments.output)
