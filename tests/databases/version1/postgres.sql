\restrict qEqgPkHP1gNQgEvxi9KYhhA7d2frfc0vwUyGoiIdst2q2fQfPbhkfalRhKzqO0q
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.larder_counted(number integer, keys integer, expires integer) RETURNS void
    LANGUAGE sql
    SET search_path TO '$user', 'public'
    AS $_$INSERT INTO larder_count AS c (number, slot, keys, expires)  SELECT $1, 1000 + pg_backend_pid() % 64, $2, $3 WHERE $2 <> 0 OR $3 <> 0  ON CONFLICT (number, slot) DO UPDATE SET keys = c.keys + excluded.keys,   expires = c.expires + excluded.expires$_$;
CREATE FUNCTION public.larder_del(key bytea, db integer DEFAULT 0) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$ DECLARE num integer := larder_enter(db, key); old record;  now_us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint; BEGIN SELECT k.seq, k.id, k.type, k.version, k.expire_at INTO old FROM larder_key AS k  WHERE k.db = num AND k.key = larder_name(larder_del.key) AND k.type <> 0  AND (k.expire_at = 0 OR k.expire_at > now_us / 1000) FOR UPDATE; IF NOT FOUND THEN RETURN false; END IF; IF old.id <> 0 THEN INSERT INTO larder_trash (id, type) VALUES (old.id, old.type) ON CONFLICT DO NOTHING; END IF; UPDATE larder_key AS k SET type = 0, id = 0, size = 0, first = 0, value = '', expire_at = -1,  version = greatest(old.version + 1, now_us) WHERE k.seq = old.seq; PERFORM larder_counted(num, -1, -(old.expire_at > 0)::integer); RETURN true; END $$;
CREATE FUNCTION public.larder_enter(db integer, key bytea) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$ DECLARE result integer; BEGIN IF NOT pg_try_advisory_xact_lock_shared(larder_lock_key()) OR NOT pg_try_advisory_xact_lock_shared(   (1818324581::bigint << 32) | 'larder_meta'::regclass::oid::bigint) THEN  RAISE EXCEPTION 'a Larder server has these tables for itself alone (mode exclusive)'   USING ERRCODE = 'lock_not_available'; END IF; IF (SELECT m.value FROM larder_meta AS m WHERE m.name = 'owner') <> '' THEN  IF EXISTS (SELECT 1 FROM larder_journal AS j WHERE j.seq >    (SELECT m.value::bigint FROM larder_meta AS m WHERE m.name = 'applied')) THEN   RAISE EXCEPTION 'the journal of a Larder server has to be applied first: start one'    USING ERRCODE = 'lock_not_available'; END IF;  UPDATE larder_meta AS m SET value = '' WHERE m.name = 'owner'; END IF; PERFORM pg_advisory_xact_lock_shared((1818324579::bigint << 32) | 'larder_meta'::regclass::oid::bigint); PERFORM pg_advisory_xact_lock(((1818324600::bigint + (get_byte(sha256(key), 0) * 2  + get_byte(sha256(key), 1) / 128)) << 32) | 'larder_meta'::regclass::oid::bigint); SELECT d.number INTO result FROM larder_db AS d WHERE d.db = larder_enter.db; IF NOT FOUND THEN RAISE EXCEPTION 'there is no database %', db; END IF; RETURN result; END $$;
CREATE FUNCTION public.larder_get(key bytea, db integer DEFAULT 0) RETURNS bytea
    LANGUAGE sql STABLE
    SET search_path TO '$user', 'public'
    AS $_$ SELECT CASE WHEN k.id = 0 THEN k.value ELSE (SELECT string_agg(c.value, ''::bytea ORDER BY c.pos)  FROM larder_chunk AS c WHERE c.id = k.id) END FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db WHERE d.db = $2 AND k.key = larder_name($1) AND k.type = 1 AND (k.expire_at = 0 OR k.expire_at > larder_now()) $_$;
CREATE FUNCTION public.larder_lock_key() RETURNS bigint
    LANGUAGE sql STABLE
    SET search_path TO '$user', 'public'
    AS $$SELECT (1818324580::bigint << 32) | 'larder_meta'::regclass::oid::bigint$$;
CREATE FUNCTION public.larder_name(name bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$SELECT CASE WHEN length(name) <= 1000 THEN name ELSE substr(name, 1, 992) || sha256(name) END$$;
CREATE FUNCTION public.larder_now() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint$$;
CREATE FUNCTION public.larder_rest(name bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$SELECT CASE WHEN length(name) <= 1000 THEN ''::bytea ELSE substr(name, 993) END$$;
CREATE FUNCTION public.larder_set(key bytea, value bytea, ttl interval DEFAULT NULL::interval, db integer DEFAULT 0) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$ DECLARE num integer := larder_enter(db, key); old record; long_id bigint := 0;  now_us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;  ends bigint := CASE WHEN ttl IS NULL THEN 0   ELSE now_us / 1000 + (extract(epoch FROM ttl) * 1000)::bigint END; BEGIN IF ends < 0 OR (ttl IS NOT NULL AND ends <= now_us / 1000) THEN  RAISE EXCEPTION 'a time to live has to be longer than nothing'; END IF; IF length(value) > 65536 THEN  UPDATE larder_meta AS m SET value = (m.value::bigint + 1)::text WHERE m.name = 'next_id'   RETURNING m.value::bigint - 1 INTO long_id;  INSERT INTO larder_chunk (id, pos, value) SELECT long_id, p, substr(larder_set.value, p * 16384 + 1, 16384)   FROM generate_series(0, (length(value) - 1) / 16384) AS p; END IF; LOOP  SELECT k.seq, k.id, k.type, k.version, k.expire_at INTO old FROM larder_key AS k   WHERE k.db = num AND k.key = larder_name(larder_set.key) FOR UPDATE;  IF FOUND THEN EXIT; END IF;  INSERT INTO larder_key AS k (db, key, key_rest, type, id, size, first, version, expire_at, value)   VALUES (num, larder_name(key), larder_rest(key), 1, long_id,    CASE WHEN long_id = 0 THEN 0 ELSE length(value) END, 0, now_us, ends,    CASE WHEN long_id = 0 THEN value ELSE '' END) ON CONFLICT DO NOTHING;  IF FOUND THEN PERFORM larder_counted(num, 1, (ends > 0)::integer); RETURN; END IF; END LOOP; IF old.id <> 0 THEN INSERT INTO larder_trash (id, type) VALUES (old.id, old.type) ON CONFLICT DO NOTHING; END IF; UPDATE larder_key AS k SET type = 1, id = long_id,  size = CASE WHEN long_id = 0 THEN 0 ELSE length(larder_set.value) END, first = 0,  version = greatest(old.version + 1, now_us), expire_at = ends,  value = CASE WHEN long_id = 0 THEN larder_set.value ELSE '' END WHERE k.seq = old.seq; PERFORM larder_counted(num, 1 - (old.expire_at >= 0)::integer,  (ends > 0)::integer - (old.expire_at > 0)::integer); END $$;
CREATE FUNCTION public.larder_text(bytes bytea) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $$ BEGIN RETURN convert_from(bytes, 'UTF8'); EXCEPTION WHEN OTHERS THEN RETURN encode(bytes, 'escape'); END $$;
CREATE FUNCTION public.larder_whole(name bytea, rest bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$SELECT CASE WHEN length(rest) = 0 THEN name ELSE substr(name, 1, 992) || rest END$$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.larder_chunk (
    id bigint NOT NULL,
    pos bigint NOT NULL,
    value bytea NOT NULL
);
ALTER TABLE ONLY public.larder_chunk ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE TABLE public.larder_count (
    number integer NOT NULL,
    slot integer NOT NULL,
    keys bigint NOT NULL,
    expires bigint NOT NULL
)
WITH (fillfactor='20');
CREATE TABLE public.larder_db (
    db integer NOT NULL,
    number integer NOT NULL,
    keys bigint NOT NULL,
    expires bigint NOT NULL
)
WITH (fillfactor='20');
CREATE TABLE public.larder_hash (
    id bigint NOT NULL,
    expire_at bigint NOT NULL,
    ord bigint NOT NULL,
    field bytea NOT NULL,
    field_rest bytea DEFAULT '\x'::bytea NOT NULL,
    value bytea NOT NULL
)
WITH (fillfactor='90');
CREATE SEQUENCE public.larder_seq
    START WITH 1
    INCREMENT BY 1024
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.larder_key (
    seq bigint DEFAULT nextval('public.larder_seq'::regclass) NOT NULL,
    version bigint NOT NULL,
    expire_at bigint NOT NULL,
    id bigint NOT NULL,
    size bigint NOT NULL,
    first bigint NOT NULL,
    db integer NOT NULL,
    type smallint NOT NULL,
    key bytea NOT NULL,
    key_rest bytea DEFAULT '\x'::bytea NOT NULL,
    value bytea NOT NULL
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='1');
CREATE VIEW public.larder_hashes AS
 SELECT d.db,
    public.larder_text(public.larder_whole(k.key, k.key_rest)) AS key,
    public.larder_text(public.larder_whole(i.field, i.field_rest)) AS field,
    public.larder_text(i.value) AS value,
        CASE
            WHEN (
            CASE
                WHEN (i.expire_at = 0) THEN k.expire_at
                WHEN (k.expire_at = 0) THEN i.expire_at
                ELSE LEAST(i.expire_at, k.expire_at)
            END > 0) THEN to_timestamp((((
            CASE
                WHEN (i.expire_at = 0) THEN k.expire_at
                WHEN (k.expire_at = 0) THEN i.expire_at
                ELSE LEAST(i.expire_at, k.expire_at)
            END)::numeric / 1000.0))::double precision)
            ELSE NULL::timestamp with time zone
        END AS expires,
    k.key AS key_bytes
   FROM ((public.larder_key k
     JOIN public.larder_db d ON ((d.number = k.db)))
     JOIN public.larder_hash i ON ((i.id = k.id)))
  WHERE ((k.type = 2) AND ((k.expire_at = 0) OR (k.expire_at > public.larder_now())) AND ((i.expire_at = 0) OR (i.expire_at > public.larder_now())));
CREATE TABLE public.larder_journal (
    seq bigint NOT NULL,
    changes bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='500', autovacuum_vacuum_cost_delay='0', toast.autovacuum_vacuum_scale_factor='0', toast.autovacuum_vacuum_threshold='5000', toast.autovacuum_vacuum_cost_delay='0');
ALTER TABLE ONLY public.larder_journal ALTER COLUMN changes SET STORAGE EXTERNAL;
CREATE VIEW public.larder_keys AS
 SELECT d.db,
    public.larder_text(public.larder_whole(k.key, k.key_rest)) AS key,
        CASE k.type
            WHEN 1 THEN 'string'::text
            WHEN 2 THEN 'hash'::text
            WHEN 3 THEN 'list'::text
            WHEN 4 THEN 'set'::text
            WHEN 5 THEN 'zset'::text
            ELSE NULL::text
        END AS type,
        CASE
            WHEN ((k.type = 1) AND (k.id = 0)) THEN (length(k.value))::bigint
            WHEN ((k.type = 2) AND (k.first <> 0) AND (k.first <= public.larder_now())) THEN (k.size - ( SELECT count(*) AS count
               FROM public.larder_hash f
              WHERE ((f.id = k.id) AND (f.expire_at <> 0) AND (f.expire_at <= public.larder_now()))))
            ELSE k.size
        END AS size,
        CASE
            WHEN (k.expire_at > 0) THEN to_timestamp((((k.expire_at)::numeric / 1000.0))::double precision)
            ELSE NULL::timestamp with time zone
        END AS expires,
        CASE
            WHEN (k.expire_at > 0) THEN (((k.expire_at - public.larder_now()))::numeric / 1000.0)
            ELSE NULL::numeric
        END AS ttl,
    k.version,
    k.key AS key_bytes
   FROM (public.larder_key k
     JOIN public.larder_db d ON ((d.number = k.db)))
  WHERE ((k.type <> 0) AND ((k.expire_at = 0) OR (k.expire_at > public.larder_now())) AND (NOT ((k.type = 2) AND (k.first <> 0) AND (k.first <= public.larder_now()) AND (k.size = ( SELECT count(*) AS count
           FROM public.larder_hash f
          WHERE ((f.id = k.id) AND (f.expire_at <> 0) AND (f.expire_at <= public.larder_now())))))));
CREATE TABLE public.larder_list (
    id bigint NOT NULL,
    pos bigint NOT NULL,
    value bytea NOT NULL
);
CREATE VIEW public.larder_lists AS
 SELECT d.db,
    public.larder_text(public.larder_whole(k.key, k.key_rest)) AS key,
    (i.pos - k.first) AS "position",
    public.larder_text(i.value) AS value,
        CASE
            WHEN (k.expire_at > 0) THEN to_timestamp((((k.expire_at)::numeric / 1000.0))::double precision)
            ELSE NULL::timestamp with time zone
        END AS expires,
    k.key AS key_bytes
   FROM ((public.larder_key k
     JOIN public.larder_db d ON ((d.number = k.db)))
     JOIN public.larder_list i ON ((i.id = k.id)))
  WHERE ((k.type = 3) AND ((k.expire_at = 0) OR (k.expire_at > public.larder_now())));
CREATE TABLE public.larder_meta (
    name text NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.larder_set (
    id bigint NOT NULL,
    ord bigint NOT NULL,
    member bytea NOT NULL,
    member_rest bytea DEFAULT '\x'::bytea NOT NULL
);
CREATE VIEW public.larder_sets AS
 SELECT d.db,
    public.larder_text(public.larder_whole(k.key, k.key_rest)) AS key,
    public.larder_text(public.larder_whole(i.member, i.member_rest)) AS member,
        CASE
            WHEN (k.expire_at > 0) THEN to_timestamp((((k.expire_at)::numeric / 1000.0))::double precision)
            ELSE NULL::timestamp with time zone
        END AS expires,
    k.key AS key_bytes
   FROM ((public.larder_key k
     JOIN public.larder_db d ON ((d.number = k.db)))
     JOIN public.larder_set i ON ((i.id = k.id)))
  WHERE ((k.type = 4) AND ((k.expire_at = 0) OR (k.expire_at > public.larder_now())));
CREATE VIEW public.larder_strings AS
 SELECT d.db,
    public.larder_text(public.larder_whole(k.key, k.key_rest)) AS key,
    public.larder_text(
        CASE
            WHEN (k.id = 0) THEN k.value
            ELSE ( SELECT string_agg(c.value, '\x'::bytea ORDER BY c.pos) AS string_agg
               FROM public.larder_chunk c
              WHERE (c.id = k.id))
        END) AS value,
        CASE
            WHEN (k.expire_at > 0) THEN to_timestamp((((k.expire_at)::numeric / 1000.0))::double precision)
            ELSE NULL::timestamp with time zone
        END AS expires,
    k.key AS key_bytes
   FROM (public.larder_key k
     JOIN public.larder_db d ON ((d.number = k.db)))
  WHERE ((k.type = 1) AND ((k.expire_at = 0) OR (k.expire_at > public.larder_now())));
CREATE TABLE public.larder_trash (
    id bigint NOT NULL,
    type smallint NOT NULL
);
CREATE TABLE public.larder_zset (
    id bigint NOT NULL,
    score double precision NOT NULL,
    ord bigint NOT NULL,
    member bytea NOT NULL,
    member_rest bytea DEFAULT '\x'::bytea NOT NULL
);
CREATE TABLE public.larder_zset_block (
    id bigint NOT NULL,
    block bigint NOT NULL,
    score double precision NOT NULL,
    count bigint NOT NULL,
    member bytea NOT NULL
)
WITH (fillfactor='80');
CREATE VIEW public.larder_zsets AS
 SELECT d.db,
    public.larder_text(public.larder_whole(k.key, k.key_rest)) AS key,
    public.larder_text(public.larder_whole(i.member, i.member_rest)) AS member,
    i.score,
        CASE
            WHEN (k.expire_at > 0) THEN to_timestamp((((k.expire_at)::numeric / 1000.0))::double precision)
            ELSE NULL::timestamp with time zone
        END AS expires,
    k.key AS key_bytes
   FROM ((public.larder_key k
     JOIN public.larder_db d ON ((d.number = k.db)))
     JOIN public.larder_zset i ON ((i.id = k.id)))
  WHERE ((k.type = 5) AND ((k.expire_at = 0) OR (k.expire_at > public.larder_now())));
INSERT INTO public.larder_chunk VALUES (1, 4, '\x7461696c');
INSERT INTO public.larder_count VALUES (0, 45, 7, 1);
INSERT INTO public.larder_count VALUES (3, 45, 1, 0);
INSERT INTO public.larder_db VALUES (0, 0, 0, 0);
INSERT INTO public.larder_db VALUES (1, 1, 0, 0);
INSERT INTO public.larder_db VALUES (2, 2, 0, 0);
INSERT INTO public.larder_db VALUES (3, 3, 0, 0);
INSERT INTO public.larder_db VALUES (4, 4, 0, 0);
INSERT INTO public.larder_db VALUES (5, 5, 0, 0);
INSERT INTO public.larder_db VALUES (6, 6, 0, 0);
INSERT INTO public.larder_db VALUES (7, 7, 0, 0);
INSERT INTO public.larder_db VALUES (8, 8, 0, 0);
INSERT INTO public.larder_db VALUES (9, 9, 0, 0);
INSERT INTO public.larder_db VALUES (10, 10, 0, 0);
INSERT INTO public.larder_db VALUES (11, 11, 0, 0);
INSERT INTO public.larder_db VALUES (12, 12, 0, 0);
INSERT INTO public.larder_db VALUES (13, 13, 0, 0);
INSERT INTO public.larder_db VALUES (14, 14, 0, 0);
INSERT INTO public.larder_db VALUES (15, 15, 0, 0);
INSERT INTO public.larder_hash VALUES (2, 0, 0, '\x66', '\x', '\x76');
INSERT INTO public.larder_hash VALUES (2, 0, 1, '\x67', '\x', '\x77');
INSERT INTO public.larder_key VALUES (1, 1794776264931209, 0, 0, 0, 0, 0, 1, '\x6772656574696e67', '\x', '\x6772c3bcc39f65200020616e6420616c6c');
INSERT INTO public.larder_key VALUES (2, 1794776264934250, 0, 1, 65540, 0, 0, 1, '\x6c6f6e67', '\x', '\x');
INSERT INTO public.larder_key VALUES (3, 1794776264935996, 5794776264935, 0, 0, 0, 0, 1, '\x6c61746572', '\x', '\x78');
INSERT INTO public.larder_key VALUES (4, 1794776264936757, 0, 2, 2, 0, 0, 2, '\x68617368', '\x', '\x');
INSERT INTO public.larder_key VALUES (5, 1794776264937887, 0, 3, 3, 0, 0, 3, '\x6c697374', '\x', '\x');
INSERT INTO public.larder_key VALUES (6, 1794776264939230, 0, 4, 2, 0, 0, 4, '\x736574', '\x', '\x');
INSERT INTO public.larder_key VALUES (7, 1794776264940032, 0, 5, 3, 0, 0, 5, '\x7a736574', '\x', '\x');
INSERT INTO public.larder_key VALUES (8, 1794776264941265, -1, 0, 0, 0, 0, 0, '\x64656c65746564', '\x', '\x');
INSERT INTO public.larder_key VALUES (9, 1794776264941975, 0, 0, 0, 0, 3, 1, '\x6f74686572', '\x', '\x33');
INSERT INTO public.larder_list VALUES (3, 0, '\x61');
INSERT INTO public.larder_list VALUES (3, 1, '\x62');
INSERT INTO public.larder_list VALUES (3, 2, '\x63');
INSERT INTO public.larder_meta VALUES ('owner', '');
INSERT INTO public.larder_meta VALUES ('applied', '0');
INSERT INTO public.larder_meta VALUES ('applying', '0');
INSERT INTO public.larder_meta VALUES ('created', '2026-11-15T20:57:44+00');
INSERT INTO public.larder_meta VALUES ('schema_version', '1');
INSERT INTO public.larder_meta VALUES ('next_db_number', '16');
INSERT INTO public.larder_meta VALUES ('next_id', '65537');
INSERT INTO public.larder_meta VALUES ('synced', '1794776264955325');
INSERT INTO public.larder_set VALUES (4, 0, '\x6d', '\x');
INSERT INTO public.larder_set VALUES (4, 1, '\x6e', '\x');
INSERT INTO public.larder_zset VALUES (5, 'Infinity', 1, '\x69', '\x');
INSERT INTO public.larder_zset VALUES (5, '-Infinity', 2, '\x6a', '\x');
INSERT INTO public.larder_zset VALUES (5, 1.5, 0, '\x6d', '\x');
SELECT pg_catalog.setval('public.larder_seq', 1, true);
ALTER TABLE ONLY public.larder_chunk
    ADD CONSTRAINT larder_chunk_pkey PRIMARY KEY (id, pos);
ALTER TABLE ONLY public.larder_count
    ADD CONSTRAINT larder_count_pkey PRIMARY KEY (number, slot);
ALTER TABLE ONLY public.larder_db
    ADD CONSTRAINT larder_db_pkey PRIMARY KEY (db);
ALTER TABLE ONLY public.larder_hash
    ADD CONSTRAINT larder_hash_pkey PRIMARY KEY (id, field);
ALTER TABLE ONLY public.larder_journal
    ADD CONSTRAINT larder_journal_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.larder_key
    ADD CONSTRAINT larder_key_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.larder_list
    ADD CONSTRAINT larder_list_pkey PRIMARY KEY (id, pos);
ALTER TABLE ONLY public.larder_meta
    ADD CONSTRAINT larder_meta_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.larder_set
    ADD CONSTRAINT larder_set_pkey PRIMARY KEY (id, member);
ALTER TABLE ONLY public.larder_trash
    ADD CONSTRAINT larder_trash_pkey PRIMARY KEY (id, type);
ALTER TABLE ONLY public.larder_zset_block
    ADD CONSTRAINT larder_zset_block_pkey PRIMARY KEY (id, block);
ALTER TABLE ONLY public.larder_zset
    ADD CONSTRAINT larder_zset_pkey PRIMARY KEY (id, member);
CREATE INDEX larder_hash_expire ON public.larder_hash USING btree (id, expire_at) WHERE (expire_at <> 0);
CREATE INDEX larder_hash_ord ON public.larder_hash USING btree (id, ord);
CREATE INDEX larder_key_expire ON public.larder_key USING btree (expire_at, db) WHERE (expire_at <> 0);
CREATE INDEX larder_key_first ON public.larder_key USING btree (first) WHERE ((type = 2) AND (first <> 0));
CREATE UNIQUE INDEX larder_key_name ON public.larder_key USING btree (db, key);
CREATE INDEX larder_set_ord ON public.larder_set USING btree (id, ord);
CREATE INDEX larder_zset_ord ON public.larder_zset USING btree (id, ord);
CREATE INDEX larder_zset_score ON public.larder_zset USING btree (id, score, member);
\unrestrict qEqgPkHP1gNQgEvxi9KYhhA7d2frfc0vwUyGoiIdst2q2fQfPbhkfalRhKzqO0q
