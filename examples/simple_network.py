"""MagmaDNN's first network on MNIST: average pooling, then dense layers of 500 and 10 units.

python examples/simple_network.py --epochs 10
python examples/simple_network.py --image 7     (prints a training image and its label)
"""

import argparse

import magmadnn_py as mdnn
from magmadnn_py import layers, optimizers

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data", help="folder with the four idx files; by default they are looked for and downloaded")
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--samples", type=int, help="train on the first so many images only")
parser.add_argument("--image", type=int, help="print this training image and stop")
arguments = parser.parse_args()

(x_train, y_train), (x_test, y_test) = mdnn.datasets.mnist.load_data(arguments.data)
if arguments.image is not None:
    for row in x_train[arguments.image]:
        print("".join(" .:-=+*#%@"[int(cell) * 10 // 256] * 2 for cell in row))
    print("label", y_train[arguments.image])
    raise SystemExit

x_train, y_train = x_train[: arguments.samples, ..., None].astype("float32") / 255, y_train[: arguments.samples]
x_test = x_test[..., None].astype("float32") / 255

model = mdnn.Sequential(
    [
        mdnn.Input((28, 28, 1)),
        layers.AveragePooling2D(2, strides=1, padding="same"),  # keeps the 784 cells
        layers.Flatten(),
        layers.Dense(500, activation="sigmoid"),
        layers.Dense(10, activation="softmax"),
    ]
)
model.summary()
model.compile(optimizers.SGD(0.05), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=128, epochs=arguments.epochs)
loss, accuracy = model.evaluate(x_test, y_test)
print(f"test: loss {loss:.4f}, accuracy {accuracy:.4f}")
