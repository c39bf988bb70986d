// rate-limiter-flexible without scripts: the limiter that is made of single commands, what else works, what does not.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

import Redis from 'ioredis';
import limiters from 'rate-limiter-flexible';
import { createClient } from 'redis';

const { RateLimiterMemory, RateLimiterRedis, RateLimiterRedisNonAtomic } = limiters;
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

for (const [name, options] of Object.entries(libraries)) {
    test(`${name}: points are consumed, run out and come back`, async () => {
        const limiter = new RateLimiterRedisNonAtomic({ ...options(), points: 3, duration: 1 });
        for (const left of [2, 1, 0]) assert.equal((await limiter.consume('user')).remainingPoints, left);
        const refused = await limiter.consume('user').catch((reason) => reason);
        assert.equal(refused.consumedPoints, 4);
        assert.ok(refused.msBeforeNext > 0 && refused.msBeforeNext <= 1000);
        assert.equal((await limiter.consume('another')).remainingPoints, 2);
        await new Promise((resolve) => setTimeout(resolve, refused.msBeforeNext + 100));
        assert.equal((await limiter.consume('user')).remainingPoints, 2);
    });

    test(`${name}: penalty, reward, block, get and delete`, async () => {
        const limiter = new RateLimiterRedisNonAtomic({ ...options(), points: 5, duration: 100 });
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

    test(`${name}: limits without an end need no script`, async () => {
        const limiter = new RateLimiterRedis({ ...options(), points: 100, duration: 0 });
        const all = await Promise.all(Array.from({ length: 120 }, () => limiter.consume('user').then(() => 1, () => 0)));
        assert.equal(all.reduce((sum, granted) => sum + granted), 100);
    });

    test(`${name}: what needs a script falls back on its insurance where there are none`, async () => {
        const insuranceLimiter = new RateLimiterMemory({ points: 2, duration: 100 });
        const limiter = new RateLimiterRedis({ ...options(), points: 2, duration: 100, insuranceLimiter });
        const granted = [];
        for (let i = 0; i < 3; i++) granted.push(await limiter.consume('user').then(() => true, () => false));
        assert.deepEqual(granted, [true, true, false]);
        const [scripts] = await ioredis.call('COMMAND', 'INFO', 'EVAL');
        if (!scripts) {
            const alone = new RateLimiterRedis({ ...options(), points: 2, duration: 100 });
            await assert.rejects(alone.consume('user'), /unknown command 'eval(sha)?'/i);
            assert.equal((await insuranceLimiter.get('user')).consumedPoints, 3);
        }
    });
}
