// rate-limiter-flexible: the limiter that is a script (EVALSHA, EVAL), the one that is made of single commands, and insurance.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

import Redis from 'ioredis';
import limiters from 'rate-limiter-flexible';
import { createClient } from 'redis';

const { BurstyRateLimiter, RateLimiterMemory, RateLimiterRedis, RateLimiterRedisNonAtomic } = limiters;
const port = Number(process.env.TEST_PORT);
let ioredis;
let nodeRedis;

before(async () => {
    ioredis = new Redis({ port });
    nodeRedis = createClient({ socket: { port, host: '127.0.0.1' } });
    await nodeRedis.connect();
});
beforeEach(() => ioredis.flushall());
after(async () => {
    await ioredis.quit();
    await nodeRedis.close();
});

const libraries = {
    ioredis: () => ({ storeClient: ioredis }),
    'node-redis': () => ({ storeClient: nodeRedis, useRedisPackage: true }),
};
const kinds = { 'by script': RateLimiterRedis, 'by commands': RateLimiterRedisNonAtomic };
const granted = (promise) => promise.then(() => 1, () => 0);

test('points are consumed, run out and come back', () => {
    const comeBack = async (Limiter, options, keyPrefix) => {
        const limiter = new Limiter({ ...options(), keyPrefix, points: 3, duration: 1 });
        for (const left of [2, 1, 0]) assert.equal((await limiter.consume('user')).remainingPoints, left);
        const refused = await limiter.consume('user').catch((reason) => reason);
        assert.equal(refused.consumedPoints, 4);
        assert.ok(refused.msBeforeNext > 0 && refused.msBeforeNext <= 1000);
        assert.equal((await limiter.consume('another')).remainingPoints, 2);
        await new Promise((resolve) => setTimeout(resolve, refused.msBeforeNext + 100));
        assert.equal((await limiter.consume('user')).remainingPoints, 2);
    };
    return Promise.all(Object.entries(kinds).flatMap(([kind, Limiter]) =>
        Object.entries(libraries).map(([name, options]) => comeBack(Limiter, options, `${name}, ${kind}`))));
});

for (const [name, options] of Object.entries(libraries)) {
    for (const [kind, Limiter] of Object.entries(kinds)) {
        test(`${name}, ${kind}: penalty, reward, block, get and delete`, async () => {
            const limiter = new Limiter({ ...options(), points: 5, duration: 100 });
            assert.equal(await limiter.get('user'), null);
            await limiter.consume('user', 2);
            assert.equal((await limiter.penalty('user', 2)).consumedPoints, 4);
            assert.equal((await limiter.reward('user', 1)).consumedPoints, 3);
            assert.equal((await limiter.get('user')).remainingPoints, 2);
            await limiter.block('user', 50);
            const refused = await limiter.consume('user').catch((reason) => reason);
            assert.ok(refused.msBeforeNext > 40_000 && refused.msBeforeNext <= 50_000);
            assert.equal(await limiter.delete('user'), true);
            assert.equal(await limiter.get('user'), null);
        });
    }

    for (const duration of [0, 100]) {
        test(`${name}: of 120 at once 100 are granted (${duration || 'no'} seconds)`, async () => {
            const limiter = new RateLimiterRedis({ ...options(), points: 100, duration });
            const all = await Promise.all(Array.from({ length: 120 }, () => granted(limiter.consume('user'))));
            assert.equal(all.reduce((sum, one) => sum + one), 100);
            assert.equal((await limiter.get('user')).consumedPoints, 120);
        });
    }

    test(`${name}: who goes on asking is blocked for longer`, async () => {
        const limiter = new RateLimiterRedis({ ...options(), points: 2, duration: 10, blockDuration: 1000 });
        const all = [];
        for (let i = 0; i < 3; i++) all.push(await granted(limiter.consume('user')));
        assert.deepEqual(all, [1, 1, 0]);
        const refused = await limiter.consume('user').catch((reason) => reason);
        assert.ok(refused.msBeforeNext > 900_000 && refused.msBeforeNext <= 1_000_000);
    });

    test(`${name}: a burst beyond the limit has a limit of its own`, async () => {
        const bursty = new BurstyRateLimiter(
            new RateLimiterRedis({ ...options(), points: 2, duration: 100 }),
            new RateLimiterRedis({ ...options(), keyPrefix: 'burst', points: 3, duration: 1000 }),
        );
        const all = [];
        for (let i = 0; i < 6; i++) all.push(await granted(bursty.consume('user')));
        assert.deepEqual(all, [1, 1, 1, 1, 1, 0]);
    });
}

test('the insurance steps in while the server cannot be asked, and only then', async () => {
    const insuranceLimiter = new RateLimiterMemory({ points: 2, duration: 100 });
    const limit = { points: 2, duration: 100, insuranceLimiter };
    const here = new RateLimiterRedis({ storeClient: ioredis, ...limit });
    assert.deepEqual([await granted(here.consume('user')), await granted(here.consume('user'))], [1, 1]);
    assert.equal(await insuranceLimiter.get('user'), null);
    const away = new Redis({ port: 1, lazyConnect: true, enableOfflineQueue: false, retryStrategy: null });
    away.on('error', () => {});
    const gone = new RateLimiterRedis({ storeClient: away, rejectIfRedisNotReady: true, ...limit });
    const all = [];
    for (let i = 0; i < 3; i++) all.push(await granted(gone.consume('user')));
    assert.deepEqual(all, [1, 1, 0]);
    assert.equal((await insuranceLimiter.get('user')).consumedPoints, 3);
});

test('a script that nobody knows any more is sent again', async () => {
    const limiter = new RateLimiterRedis({ storeClient: ioredis, points: 10, duration: 100 });
    await limiter.consume('user');
    await ioredis.script('flush');
    assert.equal((await limiter.consume('user')).consumedPoints, 2);
});
