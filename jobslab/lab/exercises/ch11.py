"""The exercises of chapter 11, accepted but never processed."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.relays import loses_the_job, relay_in_this_order, told_again

TOLD = {"a": "1 message, done once", "b": "3 messages, done once", "c": "3 messages, done 3 times"}

EXERCISES = (
    Exercise(
        number="11.1",
        title="The relay dies twice",
        kind="predict",
        minutes=3,
        task=f"""There is an outbox. The relay sends the message, has its confirmation, and dies before it crosses the
line off. It is started again, and the same happens. The third time it gets through; then a consumer comes. How many
messages has the broker, and how often is the work done?

- `"a"`  {TOLD["a"]}
- `"b"`  {TOLD["b"]}
- `"c"`  {TOLD["c"]}""",
        judge=told_again(2, TOLD),
        right="b",
        because="A relay that has died does not know what it has sent, so it sends again: at least once. Each message "
        "makes a consumer try to claim the job, and one of three claims is accepted.",
        hints=("What does the relay find in the outbox, each time that it starts?", "What does a consumer do first?"),
        wrong=(
            Wrong("a", "The line is there until it is crossed off, and who starts anew knows nothing else."),
            Wrong("c", "A message does not say that the work is to be done. It says that there may be a job to claim."),
        ),
    ),
    Exercise(
        number="11.2",
        title="A relay of your own",
        kind="complete",
        minutes=5,
        task="""A relay has four things to do: `read` the line from the outbox, `send` the message, `wait` for the
broker's confirmation, `cross off` the line. Write them in the right order, with ` / ` between them. The relay is
killed after each step, and the broker is dead for a while; no job may be lost.""",
        judge=relay_in_this_order(),
        right="read / send / wait / cross off",
        because="What is forgotten too early is lost, and what is forgotten too late is only sent twice. So the line "
        "goes last, and not before somebody else has said that they keep it.",
        hints=("After which step is the job in nobody's book?", "What do you know when a message is sent?"),
        wrong=(
            Wrong("read / cross off / send / wait", "It dies with the only word of the job in its hand."),
            Wrong("read / send / cross off / wait", "Sent is not kept: that is what the confirmation is for."),
            Wrong("read / send / wait", "Nothing is lost. And nothing is ever over."),
        ),
    ),
    Exercise(
        number="11.3",
        title="Lost with an outbox",
        kind="break it",
        minutes=5,
        task="""The outbox is there, and its relay has told the broker. Write what one consumer does, after which the
job is never done, though a sweeper, the relay and a better consumer come later. Steps: `fetch`, `ack`, `claim`,
`work`, `report`, `dies`, with ` / ` between them.""",
        judge=loses_the_job(),
        right="fetch / ack / dies",
        because="Nobody has the job then: the broker has forgotten its message, the outbox its line, and no lease was "
        "taken that could run out. Acknowledge when somebody else holds it: after the claim at the earliest.",
        hints=(
            "Who holds the job after each step: the outbox, the broker, a lease?",
            "A lease holds it from the claim on. Who holds it before?",
        ),
        wrong=(
            Wrong("fetch / dies", "The broker has no acknowledgement, and delivers it again."),
            Wrong("fetch / claim / ack / dies", "The lease runs out, and a sweeper writes a new line."),
            Wrong("fetch / claim / work / dies", "It is not lost: it is done again."),
        ),
    ),
)
