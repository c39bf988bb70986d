// The types as ioredis and as node-redis show them: hashes, lists, sets, sorted sets, transactions, iterators, and
// clients that wait for what others push.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';

import Redis from 'ioredis';
import { createClient, WatchError } from 'redis';

const port = Number(process.env.TEST_PORT);
const numbers = (n) => Array.from({ length: n }, (_, i) => i);

describe('ioredis', () => {
    let redis;
    let other;
    before(() => {
        redis = new Redis({ port });
        other = new Redis({ port });
    });
    beforeEach(() => redis.flushall());
    after(() => Promise.all([redis.quit(), other.quit()]));

    test('hashes', async () => {
        assert.equal(await redis.hset('h', { a: 1, b: 'two', c: '3.5' }), 3);
        assert.deepEqual(await redis.hgetall('h'), { a: '1', b: 'two', c: '3.5' });
        assert.deepEqual(await redis.hmget('h', 'a', 'none'), ['1', null]);
        assert.equal(await redis.hincrby('h', 'a', 41), 42);
        assert.equal(await redis.hincrbyfloat('h', 'c', 0.25), '3.75');
        assert.equal(await redis.hsetnx('h', 'a', 'x'), 0);
        assert.deepEqual((await redis.hkeys('h')).sort(), ['a', 'b', 'c']);
        assert.equal(await redis.hdel('h', 'a', 'b', 'c'), 3);
        assert.equal(await redis.exists('h'), 0);
        await assert.rejects(redis.hget((await redis.set('s', 'x')) && 's', 'f'), /WRONGTYPE/);
        assert.deepEqual(await redis.hgetallBuffer('none'), {});
    });

    test('lists', async () => {
        await redis.rpush('l', ...numbers(10));
        assert.deepEqual(await redis.lrange('l', 2, -6), ['2', '3', '4']);
        assert.equal(await redis.lindex('l', -1), '9');
        assert.equal(await redis.linsert('l', 'BEFORE', '5', 'x'), 11);
        assert.equal(await redis.lpos('l', 'x'), 5);
        assert.equal(await redis.lmove('l', 'm', 'LEFT', 'RIGHT'), '0');
        assert.deepEqual(await redis.lpop('l', 2), ['1', '2']);
        assert.deepEqual(await redis.lmpop(2, 'none', 'l', 'RIGHT', 'COUNT', 2), ['l', ['9', '8']]);
        assert.equal(await redis.ltrim('l', 1, 0), 'OK');
        assert.deepEqual(await redis.keys('*'), ['m']);
    });

    test('sets', async () => {
        await redis.sadd('a', ...numbers(10));
        await redis.sadd('b', ...numbers(5), 'x');
        assert.deepEqual((await redis.sinter('a', 'b')).sort(), ['0', '1', '2', '3', '4']);
        assert.deepEqual(await redis.sdiff('b', 'a'), ['x']);
        assert.equal(await redis.sunionstore('u', 'a', 'b'), 11);
        assert.equal(await redis.sintercard(2, 'a', 'b', 'LIMIT', 3), 3);
        assert.deepEqual(await redis.smismember('a', '1', 'x'), [1, 0]);
        const popped = await redis.spop('u', 11);
        assert.equal(new Set(popped).size, 11);
        assert.equal(await redis.exists('u'), 0);
    });

    test('sorted sets', async () => {
        await redis.zadd('z', 1, 'one', 2, 'two', 2.5, 'more', '+inf', 'last');
        assert.deepEqual(await redis.zrange('z', 0, -1, 'WITHSCORES'), ['one', '1', 'two', '2', 'more', '2.5', 'last', 'inf']);
        assert.equal(await redis.zadd('z', 'GT', 'CH', 1, 'two', 3, 'one'), 1);
        assert.equal(await redis.zrevrank('z', 'last'), 0);
        assert.deepEqual(await redis.zrangebyscore('z', '(2', 3, 'LIMIT', 0, 5), ['more', 'one']);
        assert.equal(await redis.zincrby('z', 0.5, 'two'), '2.5');
        assert.deepEqual(await redis.zpopmax('z'), ['last', 'inf']);
        assert.deepEqual(await redis.zmscore('z', 'two', 'none'), ['2.5', null]);
        assert.equal(await redis.zunionstore('u', 2, 'z', 'none', 'WEIGHTS', 2, 1), 3);
        assert.equal(await redis.zscore('u', 'one'), '6');
    });

    test('MULTI and EXEC', async () => {
        const done = await redis.multi().set('k', 1).incr('k').lpush('k', 'x').hset('h', 'f', 'v').exec();
        assert.deepEqual([done[0], done[1], done[3]], [[null, 'OK'], [null, 2], [null, 1]]);
        assert.match(done[2][0].message, /WRONGTYPE/);
        await assert.rejects(redis.multi().set('k').exec(), /EXECABORT/);
        assert.equal(await redis.get('k'), '2');
    });

    test('WATCH', async () => {
        const increment = async (client) => {
            for (;;) {
                await client.watch('counter');
                const value = Number(await client.get('counter'));
                if (await client.multi().set('counter', value + 1).exec()) return;
            }
        };
        const clients = numbers(4).map(() => new Redis({ port }));
        await Promise.all(clients.map(async (client) => {
            for (let i = 0; i < 25; i++) await increment(client);
        }));
        assert.equal(await redis.get('counter'), '100');
        await Promise.all(clients.map((client) => client.quit()));
    });

    test('streams of large collections', async () => {
        const n = 3000;
        await redis.hset('h', Object.fromEntries(numbers(n).map((i) => [`f${i}`, i])));
        await redis.sadd('s', ...numbers(n));
        await redis.zadd('z', ...numbers(n).flatMap((i) => [i, `m${i}`]));
        const walk = async (stream, step) => {
            const found = new Set();
            for await (const part of stream) for (let i = 0; i < part.length; i += step) found.add(part[i]);
            return found.size;
        };
        assert.equal(await walk(redis.hscanStream('h', { count: 100 }), 2), n);
        assert.equal(await walk(redis.sscanStream('s', { match: '1*' }), 1), numbers(n).filter((i) => `${i}`[0] === '1').length);
        assert.equal(await walk(redis.zscanStream('z'), 2), n);
    });

    test('waiting for what another pushes', async () => {
        const waiting = other.blpop('q1', 'q2', 20);
        await redis.rpush('q2', 'a', 'b');
        assert.deepEqual(await waiting, ['q2', 'a']);
        const moving = other.blmove('q3', 'done', 'LEFT', 'RIGHT', 20);
        await redis.lpush('q3', 'job');
        assert.equal(await moving, 'job');
        assert.deepEqual(await redis.lrange('done', 0, -1), ['job']);
        const least = other.bzpopmin('z', 20);
        await redis.zadd('z', 2, 'b', 1, 'a');
        assert.deepEqual(await least, ['z', 'a', '1']);
        assert.equal(await other.blpop('none', 0.05), null);
    });
});

for (const RESP of [2, 3]) {
    describe(`node-redis, RESP${RESP}`, () => {
        let redis;
        let other;
        before(async () => {
            [redis, other] = [1, 2].map(() => createClient({ RESP, socket: { port, host: '127.0.0.1' } }));
            await Promise.all([redis.connect(), other.connect()]);
        });
        beforeEach(() => redis.flushAll());
        after(() => Promise.all([redis.close(), other.close()]));

        test('hashes', async () => {
            assert.equal(await redis.hSet('h', { a: 1, b: 'two' }), 2);
            assert.deepEqual({ ...(await redis.hGetAll('h')) }, { a: '1', b: 'two' });
            assert.deepEqual(await redis.hmGet('h', ['b', 'none']), ['two', null]);
            assert.equal(await redis.hIncrBy('h', 'a', 2), 3);
            assert.deepEqual(await redis.hRandFieldCountWithValues('h', 1).then((r) => r.length), 1);
            assert.equal(await redis.hExists('h', 'none'), 0);
        });

        test('lists', async () => {
            await redis.rPush('l', ['a', 'b', 'c', 'b']);
            assert.deepEqual(await redis.lRange('l', 0, -1), ['a', 'b', 'c', 'b']);
            assert.deepEqual(await redis.lPosCount('l', 'b', 0), [1, 3]);
            assert.equal(await redis.lRem('l', -1, 'b'), 1);
            assert.deepEqual(await redis.lPopCount('l', 5), ['a', 'b', 'c']);
            assert.equal(await redis.lPop('l'), null);
        });

        test('sets', async () => {
            await redis.sAdd('s', ['a', 'b', 'c']);
            assert.deepEqual([...(await redis.sMembers('s'))].sort(), ['a', 'b', 'c']);
            assert.equal(await redis.sMove('s', 't', 'a'), 1);
            assert.deepEqual([...(await redis.sUnion(['s', 't']))].sort(), ['a', 'b', 'c']);
            assert.equal((await redis.sRandMemberCount('s', -10)).length, 10);
        });

        test('sorted sets', async () => {
            await redis.zAdd('z', [{ score: 1.5, value: 'a' }, { score: -Infinity, value: 'b' }]);
            assert.deepEqual((await redis.zRangeWithScores('z', 0, -1)).map((e) => ({ ...e })), [
                { value: 'b', score: -Infinity },
                { value: 'a', score: 1.5 },
            ]);
            assert.equal(await redis.zScore('z', 'a'), 1.5);
            assert.equal(await redis.zIncrBy('z', 1, 'a'), 2.5);
            assert.deepEqual({ ...(await redis.zPopMin('z')) }, { value: 'b', score: -Infinity });
            assert.deepEqual(await redis.zRange('z', '-inf', '+inf', { BY: 'SCORE', REV: false }), ['a']);
        });

        test('transactions and WATCH', async () => {
            assert.deepEqual(await redis.multi().set('k', '1').incr('k').lLen('none').exec(), ['OK', 2, 0]);
            await redis.watch('k');
            await other.set('k', 'changed');
            await assert.rejects(redis.multi().set('k', 'mine').exec(), WatchError);
            assert.equal(await redis.get('k'), 'changed');
            await redis.watch('k');
            await redis.unwatch();
            await other.set('k', 'again');
            assert.deepEqual(await redis.multi().get('k').exec(), ['again']);
        });

        test('iterators', async () => {
            const n = 2000;
            await redis.hSet('h', Object.fromEntries(numbers(n).map((i) => [`f${i}`, String(i)])));
            await redis.sAdd('s', numbers(n).map(String));
            await redis.zAdd('z', numbers(n).map((i) => ({ score: i, value: `m${i}` })));
            const walk = async (iterator, name) => {
                const found = new Set();
                for await (const part of iterator) for (const entry of part) found.add(name(entry));
                return found.size;
            };
            assert.equal(await walk(redis.hScanIterator('h'), (e) => e.field), n);
            assert.equal(await walk(redis.sScanIterator('s', { COUNT: 7 }), (e) => e), n);
            assert.equal(await walk(redis.zScanIterator('z'), (e) => e.value), n);
        });

        test('waiting for what another pushes', async () => {
            const waiting = other.blPop(['q1', 'q2'], 20);
            await redis.rPush('q2', ['a', 'b']);
            assert.deepEqual({ ...(await waiting) }, { key: 'q2', element: 'a' });
            const moving = other.blMove('q3', 'done', 'LEFT', 'RIGHT', 20);
            await redis.lPush('q3', 'job');
            assert.equal(await moving, 'job');
            const greatest = other.bzPopMax('z', 20);
            await redis.zAdd('z', [{ score: 1, value: 'a' }]);
            assert.deepEqual({ ...(await greatest) }, { key: 'z', value: 'a', score: 1 });
            assert.equal(await other.blPop('none', 0.05), null);
        });
    });
}
