#include "sql/proof.h"

#include "check.h"

static void postgres(void)
{
    static const char *const tested[] = {"PostgreSQL 15.18 (Debian 15.18-0+deb12u1)", "PostgreSQL 16.0",
                                         "PostgreSQL 18.4"};
    static const char *const others[] = {"PostgreSQL 14.9",
                                         "PostgreSQL 19.1",
                                         "PostgreSQL 18devel",
                                         "PostgreSQL 15.2-YB-2.25.0.0-b0",
                                         "PostgreSQL 11.2-YB-2.18.3.0-b0",
                                         "CockroachDB CCL v23.1.11 (x86_64)",
                                         "EnterpriseDB 15.4",
                                         "PostgreSQL",
                                         ""};
    for (size_t i = 0; i < sizeof tested / sizeof *tested; i++)
        CHECK(remote_is_tested(REMOTE_POSTGRES, tested[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(!remote_is_tested(REMOTE_POSTGRES, others[i]));
}

static void mariadb(void)
{
    static const char *const others[] = {"8.0.36 (MySQL Community Server - GPL)",
                                         "8.0.11-TiDB-v7.5.0 (TiDB Server)",
                                         "8.0.mysql_aurora.3.04.0 (Source distribution)",
                                         "10.6.16-MariaDB (mariadb.org)",
                                         "11.4.2-MariaDB (mariadb.org)",
                                         "10.11.5 (something)",
                                         ""};
    CHECK(remote_is_tested(REMOTE_MARIADB, "10.11.19-MariaDB-0+deb12u1 (Debian 12)"));
    CHECK(remote_is_tested(REMOTE_MARIADB, "10.11.6-MariaDB-log (mariadb.org binary distribution)"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(!remote_is_tested(REMOTE_MARIADB, others[i]));
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(postgres);
    RUN(mariadb);
    return check_done();
}
