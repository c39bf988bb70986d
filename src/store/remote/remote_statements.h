/* Private to the files of the store on a database server: the statements with a fixed text. remote_texts.c
   has them, dialect beside dialect. */
#ifndef LARDER_STORE_REMOTE_REMOTE_STATEMENTS_H
#define LARDER_STORE_REMOTE_REMOTE_STATEMENTS_H

enum remote_statement {
    R_GET_KEY,
    R_GET_KEYS,
    R_INSERT_KEYS,
    R_UPDATE_KEYS,
    R_COUNT_EXPIRED,
    R_COUNT_DEAD_HASHES,
    R_DUE_ROWS,
    R_COUNT_KEYS,
    R_COUNT_EXPIRES,
    R_LIST_DBS,
    R_GET_META,
    R_SET_META,
    R_RAISE_META,
    R_GET_WORD,
    R_PUT_WORD,
    R_TAKE_IDS,
    R_TAKE_SEQ,  /* before R_NEXT_SEQ; NULL: that one takes the block as well */
    R_LEAVE_SEQ, /* between the two, of what R_TAKE_SEQ left in a table */
    R_NEXT_SEQ,
    R_NEW_DB,
    R_PUT_DBS,
    R_FOLD_COUNTS,
    R_CLEAR_COUNTS,
    R_PUT_TRASH,
    R_DEAD_KEYS,
    R_DB_KEYS,
    R_DELETE_KEYS,
    R_LIST_TRASH,
    R_FORGET_DB,
    R_TAKE_OFF_DB,
    R_ANYTHING,
    R_LOCK,
    R_LOCK_AGAIN,
    R_LOCK_READER,
    R_LOCK_APPLIER,
    R_UNLOCK_OTHERS, /* of the three that R_LOCK takes, all but the tables' */
    R_UNLOCK,
    R_GET_OWNER,
    R_KEEP_OWNER, /* the same, and it stays so until the transaction ends */
    R_SIZE,
    R_BEGIN,
    R_SNAPSHOT, /* before R_BEGIN_READ, where that does not say it all; else NULL */
    R_BEGIN_READ,
    R_LOCK_ALL,
    R_LOCK_SOME,
    R_LOCK_STRIPES,
    R_HURRY, /* locks of the transaction from now on are had soon or not at all; NULL: the database tells at
                once that two wait for each other */
    R_HURRY_OFF, /* from now on they are waited for as ever */
    R_LOAD_DBS,
    R_BRIEF,    /* the clock and a database's number, in a row without a key; keys of it in the others */
    R_LOOSE_DB, /* this one and the next three: see remote_loose.c; NULL where no transaction is loose. Each
                   fails (ST_CONFLICT) where it finds another state than was read */
    R_LOOSE_UPDATE,
    R_LOOSE_SAME,
    R_LOOSE_ABSENT,
    R_GET_KEYS_LOCKED,
    R_ADD_COUNTS,
    R_DROP_COUNTS,
    R_SWEEP_LOCK,
    R_SWEEP_UNLOCK, /* unless it ends with the transaction */
    R_GUARD_SHARED,
    R_WAIT_LESS, /* for locks, from now on; NULL: the database tells soon enough that two wait for each
                    other */
    R_CLOCK,
    R_SOON,
    R_NOW, /* the transaction's commit is durable, whatever the session's is */
    R_UPSERT_KEYS,
    R_DELETE_NAMED_KEYS,
    R_JOURNAL_ADD,
    R_JOURNAL_PAGE,
    R_JOURNAL_DROP,
    R_JOURNAL_FORGET,
    R_LOWER_APPLIED,
    R_JOURNAL_LAST,
    R_SET_APPLIED,
    R_LISTEN, /* this one and those behind it: NULL where the database cannot tell */
    R_LISTEN_LOCK,
    R_UNLISTEN,
    R_LISTEN_UNLOCK,
    R_NOTIFY,
    R_STATEMENTS
};

#endif
