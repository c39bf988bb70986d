// Upstash's own client, as it is published, over its classes of commands.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';

import { Redis } from '@upstash/redis';

const url = process.env.TEST_URL;
const token = process.env.TEST_TOKEN;
const forms = {
    'as it comes': { url, token },
    'without base64': { url, token, responseEncoding: false },
    'one request for each command': { url, token, enableAutoPipelining: false },
};

for (const [name, options] of Object.entries(forms)) {
    describe(name, () => {
        const redis = new Redis({ ...options, enableTelemetry: false });
        beforeEach(() => redis.flushall());

        test('strings', async () => {
            assert.equal(await redis.ping(), 'PONG');
            assert.equal(await redis.echo('hello'), 'hello');
            assert.equal(await redis.set('k', 'value'), 'OK');
            assert.equal(await redis.get('k'), 'value');
            assert.equal(await redis.get('none'), null);
            assert.equal(await redis.set('k', 'other', { nx: true }), null);
            assert.equal(await redis.set('k', 'other', { xx: true, ex: 100 }), 'OK');
            assert.ok((await redis.ttl('k')) > 0);
            assert.equal(await redis.set('k', 'third', { get: true }), 'other');
            assert.equal(await redis.append('k', '!'), 6);
            assert.equal(await redis.strlen('k'), 6);
            assert.equal(await redis.getrange('k', 0, 1), 'th');
            assert.equal(await redis.setrange('k', 0, 'T'), 6);
            assert.equal(await redis.getset('k', 'x'), 'Third!');
            assert.equal(await redis.getdel('k'), 'x');
            assert.equal(await redis.mset({ a: '1', b: 'two' }), 'OK');
            assert.deepEqual(await redis.mget('a', 'b', 'c'), [1, 'two', null]);
            assert.equal(await redis.msetnx({ a: 1, z: 2 }), 0);
            assert.equal(await redis.setnx('n', 5), 1);
            assert.equal(await redis.setex('e', 100, 'v'), 'OK');
            assert.equal(await redis.psetex('e', 100000, 'v'), 'OK');
            assert.equal(await redis.getex('e', { persist: true }), 'v');
            assert.equal(await redis.ttl('e'), -1);
        });

        test('counters', async () => {
            assert.equal(await redis.incr('n'), 1);
            assert.equal(await redis.incrby('n', 10), 11);
            assert.equal(await redis.decr('n'), 10);
            assert.equal(await redis.decrby('n', 4), 6);
            assert.equal(Number(await redis.incrbyfloat('n', 0.5)), 6.5);
        });

        test('text of every kind', async () => {
            for (const text of ['', 'OK', 'häßlich €', '😀', 'line\nbreak\t"quoted" \\', '\u0000', ' ', 'null', 'a=b&c/d%2F']) {
                await redis.set('t', text);
                const got = await redis.get('t');
                assert.deepEqual(got, text === 'null' ? null : text);
                await redis.set(text || 'empty', 'x');
                assert.equal(await redis.exists(text || 'empty'), 1);
            }
        });

        test('keys', async () => {
            await redis.mset({ a: 1, b: 2, c: 3 });
            assert.equal(await redis.exists('a', 'b', 'none'), 2);
            assert.deepEqual((await redis.keys('*')).sort(), ['a', 'b', 'c']);
            assert.equal(await redis.dbsize(), 3);
            assert.equal(await redis.type('a'), 'string');
            assert.equal(await redis.expire('a', 100), 1);
            assert.equal(await redis.pexpire('a', 100000), 1);
            assert.equal(await redis.expireat('a', Math.floor(Date.now() / 1000) + 100), 1);
            assert.ok((await redis.pttl('a')) > 0);
            assert.equal(await redis.persist('a'), 1);
            assert.equal(await redis.rename('a', 'd'), 'OK');
            assert.equal(await redis.renamenx('d', 'b'), 0);
            assert.equal(await redis.copy('b', 'e'), 'COPIED');
            assert.equal(await redis.touch('b', 'e'), 2);
            assert.ok(['b', 'c', 'd', 'e'].includes(await redis.randomkey()));
            assert.equal(await redis.del('b', 'c'), 2);
            assert.equal(await redis.unlink('d', 'e'), 2);
            assert.equal(await redis.dbsize(), 0);
        });

        test('walking the keys', async () => {
            const names = Array.from({ length: 250 }, (_, i) => `k${i}`);
            const pipeline = redis.pipeline();
            for (const n of names) pipeline.set(n, n);
            await pipeline.exec();
            let cursor = '0';
            const seen = new Set();
            do {
                const [next, page] = await redis.scan(cursor, { count: 50, match: 'k*' });
                page.forEach((key) => seen.add(key));
                cursor = String(next);
            } while (cursor !== '0');
            assert.deepEqual([...seen].sort(), names.sort());
        });

        test('hashes', async () => {
            assert.equal(await redis.hset('h', { a: 1, b: 'two' }), 2);
            assert.equal(await redis.hget('h', 'b'), 'two');
            assert.equal(await redis.hget('h', 'none'), null);
            const all = await redis.hgetall('h');
            assert.equal(String(all.a), '1');
            assert.equal(all.b, 'two');
            assert.equal(await redis.hgetall('none'), null);
            const some = await redis.hmget('h', 'a', 'none');
            assert.equal(String(some.a), '1');
            assert.equal(some.none, null);
            assert.equal(await redis.hincrby('h', 'a', 5), 6);
            assert.equal(Number(await redis.hincrbyfloat('h', 'a', 0.5)), 6.5);
            assert.equal(await redis.hexists('h', 'a'), 1);
            assert.equal(await redis.hlen('h'), 2);
            assert.equal(await redis.hstrlen('h', 'b'), 3);
            assert.deepEqual((await redis.hkeys('h')).sort(), ['a', 'b']);
            assert.equal((await redis.hvals('h')).length, 2);
            assert.equal(await redis.hsetnx('h', 'a', 1), 0);
            assert.equal((await redis.hscan('h', 0))[1].length, 4);
            assert.ok(['a', 'b'].includes(await redis.hrandfield('h')));
            assert.equal(await redis.hmset('h', { c: 3 }), 'OK');
            assert.equal(await redis.hdel('h', 'a', 'b', 'c'), 3);
        });

        test('lists', async () => {
            assert.equal(await redis.rpush('l', 'b', 'c'), 2);
            assert.equal(await redis.lpush('l', 'a'), 3);
            assert.equal(await redis.lpushx('none', 'a'), 0);
            assert.deepEqual(await redis.lrange('l', 0, -1), ['a', 'b', 'c']);
            assert.equal(await redis.lindex('l', 1), 'b');
            assert.equal(await redis.llen('l'), 3);
            assert.equal(await redis.lset('l', 1, 'B'), 'OK');
            assert.equal(await redis.linsert('l', 'before', 'B', 'x'), 4);
            assert.equal(await redis.lpos('l', 'B'), 2);
            assert.equal(await redis.lrem('l', 1, 'x'), 1);
            assert.equal(await redis.lmove('l', 'm', 'left', 'right'), 'a');
            assert.equal(await redis.lmove('l', 'm', 'right', 'left'), 'c');
            assert.equal(await redis.ltrim('m', 0, 0), 'OK');
            assert.equal(await redis.rpop('m'), 'c');
            assert.deepEqual(await redis.lpop('l', 5), ['B']);
            assert.equal(await redis.lpop('l'), null);
        });

        test('sets', async () => {
            assert.equal(await redis.sadd('s', 'a', 'b', 'c'), 3);
            assert.equal(await redis.sadd('t', 'b', 'c', 'd'), 3);
            assert.equal(await redis.scard('s'), 3);
            assert.deepEqual((await redis.smembers('s')).sort(), ['a', 'b', 'c']);
            assert.equal(await redis.sismember('s', 'a'), 1);
            assert.deepEqual(await redis.smismember('s', ['a', 'x']), [1, 0]);
            assert.deepEqual((await redis.sinter('s', 't')).sort(), ['b', 'c']);
            assert.deepEqual((await redis.sunion('s', 't')).sort(), ['a', 'b', 'c', 'd']);
            assert.deepEqual(await redis.sdiff('s', 't'), ['a']);
            assert.equal(await redis.sinterstore('u', 's', 't'), 2);
            assert.equal(await redis.smove('s', 'u', 'a'), 1);
            assert.equal(await redis.srem('s', 'b', 'x'), 1);
            assert.equal(await redis.spop('s'), 'c');
            assert.ok(['a', 'b', 'c'].includes(await redis.srandmember('u')));
            assert.equal((await redis.sscan('u', 0))[1].length, 3);
        });

        test('sorted sets', async () => {
            assert.equal(await redis.zadd('z', { score: 1, member: 'a' }, { score: 2.5, member: 'b' }), 2);
            assert.equal(await redis.zadd('z', { nx: true }, { score: 9, member: 'a' }), 0);
            assert.equal(Number(await redis.zincrby('z', 3, 'a')), 4);
            assert.equal(Number(await redis.zscore('z', 'b')), 2.5);
            assert.equal(await redis.zscore('z', 'none'), null);
            assert.equal(await redis.zcard('z'), 2);
            assert.equal(await redis.zcount('z', 0, 3), 1);
            assert.equal(await redis.zrank('z', 'a'), 1);
            assert.equal(await redis.zrevrank('z', 'a'), 0);
            assert.deepEqual(await redis.zrange('z', 0, -1), ['b', 'a']);
            assert.deepEqual((await redis.zrange('z', 0, -1, { withScores: true })).map(String), ['b', '2.5', 'a', '4']);
            assert.deepEqual(await redis.zrange('z', 3, 10, { byScore: true }), ['a']);
            assert.deepEqual((await redis.zmscore('z', ['a', 'none'])).map((s) => s && Number(s)), [4, null]);
            assert.equal(await redis.zlexcount('z', '-', '+'), 2);
            assert.deepEqual((await redis.zpopmin('z')).map(String), ['b', '2.5']);
            assert.equal(await redis.zrem('z', 'a'), 1);
            await redis.zadd('x', { score: 1, member: 'm' });
            await redis.zadd('y', { score: 2, member: 'm' });
            assert.equal(await redis.zunionstore('z', 2, ['x', 'y']), 1);
            assert.equal(Number(await redis.zscore('z', 'm')), 3);
            assert.equal(await redis.zremrangebyscore('z', 0, 10), 1);
        });

        test('bits', async () => {
            assert.equal(await redis.setbit('b', 7, 1), 0);
            assert.equal(await redis.getbit('b', 7), 1);
            assert.equal(await redis.bitcount('b'), 1);
            assert.equal(await redis.bitpos('b', 1), 7);
            assert.equal(await redis.bitop('and', 'c', 'b'), 1);
        });

        test('pipelines', async () => {
            const p = redis.pipeline();
            p.set('k', 'v').get('k').incr('n').hset('h', { f: 'x' }).hgetall('h').zadd('z', { score: 1, member: 'm' });
            assert.deepEqual(await p.exec(), ['OK', 'v', 1, 1, { f: 'x' }, 1]);
            const bad = redis.pipeline().set('k', 'v').incr('k').get('k');
            await assert.rejects(() => bad.exec(), /not an integer/);
            const kept = await redis.pipeline().set('k', 'v').incr('k').get('k').exec({ keepErrors: true });
            assert.equal(kept[0].result, 'OK');
            assert.match(kept[1].error, /not an integer/);
            assert.equal(kept[2].result, 'v');
            const many = redis.pipeline();
            for (let i = 0; i < 2000; i++) many.incr('count');
            assert.equal((await many.exec()).at(-1), 2000);
        });

        test('transactions', async () => {
            const tx = redis.multi();
            tx.set('k', 'v').incr('n').lpush('l', 'a').lrange('l', 0, -1);
            assert.deepEqual(await tx.exec(), ['OK', 1, 1, ['a']]);
            await assert.rejects(() => redis.multi().set('k', 'v').incr('k').exec(), /not an integer/);
        });

        test('many at once', async () => {
            const all = await Promise.all(Array.from({ length: 200 }, (_, i) => redis.set(`k${i}`, `v${i}`)));
            assert.ok(all.every((r) => r === 'OK'));
            const got = await Promise.all(Array.from({ length: 200 }, (_, i) => redis.get(`k${i}`)));
            assert.deepEqual(got, Array.from({ length: 200 }, (_, i) => `v${i}`));
        });

        test('errors', async () => {
            await redis.set('k', 'v');
            await assert.rejects(() => redis.lpush('k', 'x'), /WRONGTYPE/);
        });
    });
}

test('values that are not text', async () => {
    const redis = new Redis({ url, token });
    await redis.set('o', { a: [1, 'two', null], b: { c: true } });
    assert.deepEqual(await redis.get('o'), { a: [1, 'two', null], b: { c: true } });
    await redis.rpush('l', 1, { x: 2 });
    assert.deepEqual(await redis.lrange('l', 0, -1), [1, { x: 2 }]);
});

test('text as it is', async () => {
    const redis = new Redis({ url, token, automaticDeserialization: false });
    for (const text of ['1', 'null', '{"a": 1}', 'plain', '']) {
        await redis.set('t', text);
        assert.equal(await redis.get('t'), text);
    }
    assert.deepEqual(await redis.mget('t', 'none'), ['', null]);
});

test('a wrong token', async () => {
    const redis = new Redis({ url, token: 'wrong', retry: false });
    await assert.rejects(() => redis.get('k'), /assword|Unauthorized|unauthorized/);
});
