from trainvitals.run.alerts import Alert


def words(message, **metrics):
    return Alert("name", lambda metrics: True, message=message).words(metrics)


def test_a_field_that_nobody_knows_stays_as_it_was_written_and_the_others_are_filled_in():
    assert words("loss {loss:.2f} of {model:>8} on {gpu}", loss=1.5) == "loss 1.50 of {model:>8} on {gpu}"


def test_a_value_that_does_not_fit_its_format_leaves_the_message_as_it_stands():
    assert words("loss {loss:.2f}", loss="high") == "loss {loss:.2f}"


def test_without_a_message_an_alert_has_its_name():
    assert words("") == "name"
