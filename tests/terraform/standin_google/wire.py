"""Messages of protocol buffers, as far as tfplugin5 needs them: numbers and what has a length.

>>> message((1, 150), (2, "name"), (3, True))
b'\\x08\\x96\\x01\\x12\\x04name\\x18\\x01'
"""


def varint(number):
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(int(value))
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields):
    """Of pairs of a field's number and its value; 0, False and "" are what an absent field means."""
    return b"".join(field(number, value) for number, value in fields if value or isinstance(value, bytes))


def first(number, data):
    """The first field of that number in a message all of whose fields have a length."""
    while data:
        key, data = _varint(data)
        size, data = _varint(data)
        if key >> 3 == number:
            return data[:size]
        data = data[size:]
    return b""


def _varint(data):
    number = shift = position = 0
    while True:
        byte = data[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return number, data[position:]
