/* The mailbox carries messages of kinds that it does not know: in order, within its bound, and those that are
   posted once only once. */
#include "server/mailbox.h"

#include <stdlib.h>

#include "check.h"

struct note {
    struct message message;
    int number;
};

static int received[16], nreceived, ndiscarded;

static void receive_note(struct worker *w, struct message *m)
{
    CHECK(w == NULL);
    received[nreceived++] = ((struct note *)m)->number;
    free(m);
}

static void discard_note(struct message *m)
{
    ndiscarded++;
    free(m);
}

static void receive_signal(struct worker *w, struct message *m)
{
    (void)w, (void)m;
    received[nreceived++] = -1;
}

static const struct message_kind note = {receive_note, discard_note};
static const struct message_kind signal_kind = {receive_signal, NULL};

static struct message *new_note(int number)
{
    struct note *n = calloc(1, sizeof *n);
    if (!n)
        abort();
    n->message.kind = &note;
    n->number = number;
    return &n->message;
}

static void messages_arrive_in_the_order_of_their_posting(void)
{
    struct mailbox m;
    struct message once = {.kind = &signal_kind};
    mailbox_init(&m);
    nreceived = 0;
    mailbox_post(&m, new_note(1));
    mailbox_post_once(&m, &once);
    mailbox_post(&m, new_note(2));
    mailbox_read(&m, NULL);
    CHECK_EQ(nreceived, 3);
    CHECK(received[0] == 1 && received[1] == -1 && received[2] == 2);
    mailbox_read(&m, NULL);
    CHECK_EQ(nreceived, 3);
    mailbox_release(&m);
}

static void one_that_waits_already_is_not_posted_again(void)
{
    struct mailbox m;
    struct message once = {.kind = &signal_kind};
    mailbox_init(&m);
    for (int i = 1; i <= 2; i++) {
        nreceived = 0;
        mailbox_post_once(&m, &once);
        mailbox_post_once(&m, &once);
        mailbox_read(&m, NULL);
        CHECK_EQ(nreceived, 1);
    }
    mailbox_release(&m);
}

static void what_finds_no_room_stays_with_its_poster(void)
{
    struct mailbox m;
    size_t most = (size_t)64 << 20;
    mailbox_init(&m);
    nreceived = 0;
    CHECK(mailbox_post_bounded(&m, new_note(1), most - 1));
    struct message *second = new_note(2);
    CHECK(!mailbox_post_bounded(&m, second, 2));
    mailbox_post(&m, new_note(3)); /* which has no bound */
    mailbox_read(&m, NULL);
    CHECK_EQ(nreceived, 2);
    CHECK(received[0] == 1 && received[1] == 3);
    CHECK(mailbox_post_bounded(&m, second, most)); /* there is room again */
    mailbox_read(&m, NULL);
    CHECK_EQ(nreceived, 3);
    mailbox_release(&m);
}

static void what_nobody_received_is_discarded(void)
{
    struct mailbox m;
    struct message once = {.kind = &signal_kind};
    mailbox_init(&m);
    nreceived = ndiscarded = 0;
    mailbox_post(&m, new_note(1));
    mailbox_post_once(&m, &once);
    mailbox_post(&m, new_note(2));
    mailbox_release(&m);
    CHECK_EQ(nreceived, 0);
    CHECK_EQ(ndiscarded, 2);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(messages_arrive_in_the_order_of_their_posting);
    RUN(one_that_waits_already_is_not_posted_again);
    RUN(what_finds_no_room_stays_with_its_poster);
    RUN(what_nobody_received_is_discarded);
    return check_done();
}
