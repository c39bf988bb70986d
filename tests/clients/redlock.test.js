// redlock: locks on one resource and on several, which are scripts (EVALSHA, EVAL) each; and ioredis' own commands by script.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

import Redis from 'ioredis';
import Redlock from 'redlock';

const port = Number(process.env.TEST_PORT);
let client;
let redlock;

before(() => {
    client = new Redis({ port });
    redlock = new Redlock([client], { retryCount: 0 });
    redlock.on('clientError', () => {});
});
beforeEach(() => client.flushall());
after(() => client.quit());

test('a lock is taken, refused to others, prolonged and given back', async () => {
    const lock = await redlock.lock('resource', 60_000);
    await assert.rejects(redlock.lock('resource', 60_000), { name: 'LockError' });
    const left = await client.pttl('resource');
    assert.ok(left > 50_000 && left <= 60_000);
    await lock.extend(100_000);
    assert.ok((await client.pttl('resource')) > 90_000);
    await lock.unlock();
    assert.equal(await client.exists('resource'), 0);
    await assert.rejects(lock.extend(1000), { name: 'LockError' });
});

test('several resources are locked together or not at all', async () => {
    const both = await redlock.lock(['a', 'b'], 60_000);
    await assert.rejects(redlock.lock(['b', 'c'], 60_000), { name: 'LockError' });
    assert.equal(await client.exists('c'), 0);
    await both.unlock();
    assert.deepEqual(await client.keys('*'), []);
});

test('who has lost a lock cannot give it back for another', async () => {
    const lost = await redlock.lock('resource', 60_000);
    await client.del('resource');
    const other = await redlock.lock('resource', 60_000);
    await assert.rejects(lost.unlock(), { name: 'LockError' });
    assert.equal(await client.get('resource'), other.value);
});

test('ten that want it take turns', async () => {
    const patient = new Redlock([client], { retryCount: -1, retryDelay: 5, retryJitter: 5 });
    let held = 0;
    await Promise.all(Array.from({ length: 10 }, async () => {
        const lock = await patient.lock('turns', 60_000);
        assert.equal(++held, 1);
        const value = Number(await client.get('value'));
        await client.set('value', value + 1);
        held--;
        await lock.unlock();
    }));
    assert.equal(await client.get('value'), '10');
});

test('commands of one\'s own, also in pipelines and transactions', async () => {
    const own = new Redis({ port, scripts: { cap: { numberOfKeys: 1, lua: `
        local value = math.min(tonumber(ARGV[2]), redis.call('incrby', KEYS[1], ARGV[1]))
        redis.call('set', KEYS[1], value)
        return {KEYS[1], value, cjson.encode({value = value})}` } } });
    try {
        assert.deepEqual(await own.cap('n', 5, 7), ['n', 5, '{"value":5}']);
        const replies = await own.pipeline().cap('n', 5, 7).get('n').cap('n', 'x', 7).exec();
        assert.deepEqual(replies.slice(0, 2), [[null, ['n', 7, '{"value":7}']], [null, '7']]);
        assert.match(replies[2][0].message, /ERR value is not an integer or out of range script: [0-9a-f]{40}, on @user_script:2\./);
        const both = await own.multi().cap('n', -7, 7).incr('n').exec();
        assert.deepEqual(both, [[null, ['n', 0, '{"value":0}']], [null, 1]]);
    } finally {
        await own.quit();
    }
});
