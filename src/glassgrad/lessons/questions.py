"""The questions of the quiz, in the order of their lessons."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["QUESTIONS", "Question"]


@dataclass(frozen=True)
class Question:
    """One question: the lesson it is about, its text, what can be chosen, which choice is right, and why."""

    lesson: int
    text: str
    choices: tuple[str, ...]
    right: int
    why: str


QUESTIONS: tuple[Question, ...] = (
    Question(
        1,
        "y = a * a + a at a = 3. What is dy/da?",
        ("4", "6", "7", "12"),
        2,
        "a is used three times: twice in a * a, which gives 3 + 3, and once alone, which gives 1. Slopes add.",
    ),
    Question(
        1,
        "w moves the prediction 2 times as far, and the prediction moves the loss 14 times as far. How far does w move "
        "the loss?",
        ("16 times as far", "28 times as far", "7 times as far", "14 times as far"),
        1,
        "Along a path slopes multiply: 2 · 14. They add only where several paths meet.",
    ),
    Question(
        2,
        "y = x @ w with x of shape (32, 10) and w of shape (10, 5). What is dw?",
        ("dy @ x.T", "x.T @ dy", "x @ dy", "dy.T @ x"),
        1,
        "dw needs the shape (10, 5) of w. dy has (32, 5), so only x.T @ dy, (10, 32) @ (32, 5), fits.",
    ),
    Question(
        2,
        "The bias b of shape (5,) was added to all 32 rows. Which gradient does it get?",
        ("dy", "dy[0]", "dy.sum(0)", "dy.mean(0)"),
        2,
        "One number was used in 32 rows, so 32 gradients arrive at it, and they add. A mean is taken only where the "
        "forward pass takes one; if the loss does, its 1/n is in dy already.",
    ),
    Question(
        2,
        "db is left with the shape (32, 5), and b - 0.1 * db runs without an error. Why is that dangerous?",
        (
            "b silently grows to shape (32, 5), by broadcasting",
            "NumPy adds the rows up by itself",
            "it is slower, and otherwise right",
            "the sign turns round",
        ),
        0,
        "Broadcasting makes b an array of 32 rows, each trained on one example. It may even fit the training set.",
    ),
    Question(
        3,
        "Why is the largest score subtracted before exp?",
        (
            "to make the gradient larger",
            "so that exp cannot overflow; the result does not change by it",
            "so that the shares add up to 1",
            "to speed up exp",
        ),
        1,
        "softmax(s + c) = softmax(s) for any c. With the largest at 0 every exp is at most 1.",
    ),
    Question(
        3,
        "What is the gradient of cross entropy with respect to the scores, for one example with the shares p?",
        ("p", "p - 1", "p minus 1 at the right class", "-1 / p at the right class"),
        2,
        "All scores are pushed down by their share, and the right one is pulled up by 1. That adds up to 0.",
    ),
    Question(
        4,
        "Batch norm's gradient has mean 0 over the batch. Why must it?",
        (
            "the data are centred",
            "adding the same number to all inputs does not change the output",
            "the bias takes the mean away",
            "it is only so at the beginning",
        ),
        1,
        "A direction in which the output does not move has slope 0. Shifting all inputs is one, stretching another.",
    ),
    Question(
        4,
        "In batch norm the centred values are used twice: in the variance and in the result. What does that mean for "
        "their gradient?",
        (
            "the larger of two gradients counts",
            "the mean of two gradients",
            "it is assigned once and added to once",
            "the second assignment replaces the first",
        ),
        2,
        "Two uses, two paths, one sum: = for the first that arrives, += for the second.",
    ),
    Question(
        5,
        "An embedding row is looked up three times in a batch. Which gradient does it get?",
        ("that of the last look-up", "the sum of three", "the mean of three", "three rows of its own"),
        1,
        "dC[index] = g keeps the last one only, and so does dC[index] += g in NumPy. np.add.at adds all of them.",
    ),
    Question(
        5,
        "The largest logit is subtracted for stability only. What should its own gradient come out as?",
        ("1", "the sum of all gradients", "0, up to rounding", "-1"),
        2,
        "The loss does not depend on what is subtracted, so the slope for it is 0. That is a check that costs nothing.",
    ),
    Question(
        6,
        "In a backward pass, when may a value send its gradient on?",
        (
            "as soon as it has got any",
            "when everything that was made from it has sent",
            "when its arguments have sent",
            "in any order, if the sends are added up",
        ),
        1,
        "Sent earlier, the part that arrives later would be missing, or the first part would be sent twice.",
    ),
    Question(
        6,
        "Why is the order in which values were made, read backwards, a right order?",
        (
            "a value can only be made from values that exist already",
            "Python keeps lists in order",
            "loops are not allowed",
            "it is right for trees only",
        ),
        0,
        "So everything that was made from a value is younger than it, and comes first when the list is read backwards.",
    ),
    Question(
        7,
        "A function has 1,000,000 inputs and one output. How many passes does reverse mode take for its gradient?",
        ("1,000,000", "1,000", "2 for each layer", "1"),
        3,
        "One for each output. Forward mode takes one for each input; that is the better one where inputs are few.",
    ),
    Question(
        7,
        "What does reverse mode pay for that?",
        ("nothing", "memory: values of the forward pass are kept", "precision", "a second forward pass"),
        1,
        "The slopes depend on the values, and they are needed in reverse order, so the values are kept until then.",
    ),
    Question(
        8,
        "Gradient descent on a bowl of curvature 10 (second derivative). Above which rate does it diverge?",
        ("0.1", "0.2", "1", "10"),
        1,
        "A step multiplies the distance by 1 - rate · 10. Beyond 2 / 10 it is below -1: each step goes further astray.",
    ),
    Question(
        8,
        "What does a product of the Hessian and a vector cost, without ever building the Hessian?",
        ("about as much as a few gradients", "n gradients", "n² numbers of memory", "it cannot be done"),
        0,
        "It is the derivative of the gradient along one direction: one more pass over the backward pass.",
    ),
    Question(
        9,
        "What does checkpointing trade?",
        ("precision for speed", "time for memory", "memory for time", "rate for batch size"),
        1,
        "Values in between are thrown away and computed again when the backward pass comes to them.",
    ),
    Question(
        10,
        "The gradient is (30, 4), the limit 5. What does clipping by norm change?",
        ("the direction and the length", "the direction only", "the length only", "neither"),
        2,
        "All entries are multiplied by the same number. Clipping by value would cut 30 to 5, and turn the gradient.",
    ),
    Question(
        10,
        "One entry of a gradient is nan. What does clipping by norm do?",
        ("it makes that entry 0", "all entries become nan", "it leaves that entry out", "it raises an error"),
        1,
        "The norm is nan, and every entry is multiplied by limit / norm. Clipping shortens; it does not repair.",
    ),
    Question(
        11,
        "zero_grad is forgotten. What does each step use?",
        ("the sum of all gradients so far", "the first gradient", "twice the gradient", "random numbers"),
        0,
        "backward adds to .grad. It is like a momentum of 1 that never forgets.",
    ),
    Question(
        11,
        "predictions (n, 1) minus targets (n,) has which shape?",
        ("(n, 1)", "(n,)", "(n, n)", "it is an error"),
        2,
        "Every prediction is compared with every target, and the best answer to all of them is their mean.",
    ),
    Question(
        12,
        "z = x + y. Why must x not add its next gradient in place to the array that it got from z?",
        (
            "it is too small",
            "y got the same array",
            "it has the wrong dtype",
            "in-place adds are slower",
        ),
        1,
        "Both were sent one and the same array. Adding into it for x would change the gradient of y as well.",
    ),
    Question(
        12,
        "An argument of shape (1, 3) was broadcast to (4, 3). What happens to the gradient of shape (4, 3)?",
        (
            "its first row is taken",
            "it is summed over axis 0, and the axis kept",
            "it is flattened",
            "its mean is taken",
        ),
        1,
        "Each of the three numbers was used in four rows. The sum has the shape (1, 3), that of the argument.",
    ),
    Question(
        13,
        "The largest slope of a sigmoid is a quarter. What is left of a gradient after ten of them, at most?",
        ("a fortieth", "a thousandth", "a millionth", "a quarter"),
        2,
        "0.25 to the tenth is about 0.000001, if the weights do not make up for it.",
    ),
    Question(
        13,
        "With which standard deviation does He's initialisation draw the weights of a ReLU layer with 200 inputs?",
        ("0.1", "0.01", "1 / 200", "1.4"),
        0,
        "The root of 2 / 200. The 2 makes up for the half that a ReLU shuts out.",
    ),
    Question(
        13,
        "Why does a gradient survive many blocks of the form x + f(x)?",
        (
            "f is linear",
            "the slope of a block is 1 plus something: the 1 is never multiplied away",
            "f has no weights",
            "they are normalised",
        ),
        1,
        "Multiplied out, one path goes through all blocks untouched.",
    ),
    Question(
        14,
        "What does bfloat16 give up, compared with float16?",
        ("range", "digits", "the sign", "infinities"),
        1,
        "Eight bits of exponent, as float32 has, and seven digits. Nothing underflows, and 1.001 is 1.",
    ),
    Question(
        14,
        "Gradients underflow in float16. Why does multiplying the loss by 65536 help?",
        (
            "all gradients are multiplied by it, and are divided by it afterwards",
            "it makes the rate larger",
            "float16 is more precise for large losses",
            "the weights become larger",
        ),
        0,
        "Twice the loss is twice every gradient, and a power of two changes the exponents alone: it rounds nothing.",
    ),
    Question(
        14,
        "Halving the nudge of a difference quotient makes its error larger. What dominates?",
        ("the curve of the function", "rounding", "the size of the batch", "the rate"),
        1,
        "Two nearly equal results are subtracted, and the rounding that is left is divided by the nudge.",
    ),
    Question(
        15,
        "A loss starts at 1.10 with three classes and stays there; no weight moves. What do you look at first?",
        (
            "the number of layers",
            "the order of zero_grad, backward and step",
            "the precision of the weights",
            "the size of the batch",
        ),
        1,
        "Weights that do not move at all get no gradient, or none is left: zeroed too early, or cut from the graph.",
    ),
    Question(
        15,
        "Dropout is still on while you measure. How does the measured loss compare with the real one?",
        ("it is better", "it is worse, and changes from time to time", "it is the same", "it is nan"),
        1,
        "Half of the units are missing, other ones at every call. eval() before measuring, train() after it.",
    ),
    Question(
        16,
        "A hook at a tensor returns g * 0. What happens?",
        (
            "the forward pass gives zeros",
            "everything below it in the graph gets no gradient from there",
            "everything above it gets no gradient",
            "the optimizer skips a step",
        ),
        1,
        "What a hook returns takes the gradient's place, and is what is sent on, down to the inputs.",
    ),
    Question(
        16,
        "Where does gradient clipping belong?",
        (
            "before backward",
            "between backward and step",
            "after step",
            "between zero_grad and backward",
        ),
        1,
        "There the gradient is known and not yet used.",
    ),
)
