// ioredis: handshake, values, pipelines, scans, several databases, and a server that closes connections. Over TLS when
// TEST_CA names the authority's certificate.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import Redis from 'ioredis';

const port = Number(process.env.TEST_PORT);
const socket = process.env.TEST_SOCKET;
const ca = process.env.TEST_CA;
const where = { port, ...(ca && { tls: { ca: readFileSync(ca), servername: 'localhost' } }) };
let redis;

before(async () => {
    redis = new Redis({ ...where, connectionName: 'ioredis-tests' });
    redis.on('error', () => {}); // connections are lost on purpose below
    await redis.flushall();
});
after(() => redis.quit());

test('handshake', async () => {
    assert.equal(await redis.ping(), 'PONG');
    assert.equal(await redis.client('GETNAME'), 'ioredis-tests');
    assert.match(await redis.info('server'), /redis_version:7\./);
});

test('values and options', async () => {
    const bytes = Buffer.from([0, 1, 13, 10, 255, 254]);
    assert.equal(await redis.set('binary', bytes), 'OK');
    assert.deepEqual(await redis.getBuffer('binary'), bytes);
    assert.equal(await redis.get('missing'), null);
    assert.equal(await redis.set('k', 'v', 'EX', 1000, 'NX'), 'OK');
    assert.equal(await redis.set('k', 'w', 'NX'), null);
    assert.ok((await redis.ttl('k')) > 990);
    assert.equal(await redis.incrbyfloat('f', 1.25), '1.25');
    assert.deepEqual(await redis.mget('k', 'missing'), ['v', null]);
    await assert.rejects(redis.incr('k'), /ERR value is not an integer or out of range/);
    const large = 'x'.repeat(4 << 20);
    await redis.set('large', large);
    assert.equal(await redis.get('large'), large);
});

test('pipelines', async () => {
    const pipeline = redis.pipeline();
    for (let i = 0; i < 1000; i++) pipeline.set(`p:${i}`, i).incr(`p:${i}`);
    const results = await pipeline.exec();
    assert.equal(results.length, 2000);
    results.forEach(([error, value], i) => {
        assert.equal(error, null);
        assert.equal(value, i % 2 ? (i + 1) / 2 : 'OK');
    });
    const mixed = await redis.pipeline().set('e', 'x').incr('e').get('e').exec();
    assert.ok(mixed[1][0] instanceof Error);
    assert.equal(mixed[2][1], 'x');
});

test('commands issued together are answered in order', async () => {
    await redis.del('counter');
    const replies = await Promise.all(Array.from({ length: 500 }, () => redis.incr('counter')));
    assert.deepEqual(replies, Array.from({ length: 500 }, (_, i) => i + 1));
});

test('scanStream', async () => {
    const other = new Redis({ ...where, db: 7 });
    await other.mset(Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`scan:${i}`, i])));
    await other.set('not-this', 1);
    const found = new Set();
    for await (const keys of other.scanStream({ match: 'scan:*', count: 100 })) keys.forEach((k) => found.add(k));
    assert.equal(found.size, 1500);
    assert.equal(await redis.exists('scan:1'), 0);
    await other.quit();
});

test('reconnects when its connection is killed, and keeps its database', async () => {
    const victim = new Redis({ ...where, db: 3, connectionName: 'victim' });
    victim.on('error', () => {});
    await victim.set('where', 'db3');
    const id = await victim.client('ID');
    const closed = new Promise((resolve) => victim.once('close', resolve));
    assert.equal(await redis.client('KILL', 'ID', id), 1);
    await closed;
    assert.equal(await victim.get('where'), 'db3');
    assert.notEqual(await victim.client('ID'), id);
    await victim.quit();
});

test('autopipelining', async () => {
    const auto = new Redis({ ...where, enableAutoPipelining: true });
    await Promise.all(Array.from({ length: 300 }, (_, i) => auto.set(`auto:${i}`, i)));
    const values = await Promise.all(Array.from({ length: 300 }, (_, i) => auto.get(`auto:${i}`)));
    assert.deepEqual(values, Array.from({ length: 300 }, (_, i) => String(i)));
    await auto.quit();
});

test('Unix socket', { skip: !socket }, async () => {
    const local = new Redis(socket);
    assert.equal(await local.ping(), 'PONG');
    await local.quit();
});
