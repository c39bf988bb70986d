// node-redis in RESP2 and RESP3: handshake, values, pipelines, scans, reconnection.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createClient, RESP_TYPES } from 'redis';

const port = Number(process.env.TEST_PORT);

async function connected(options) {
    const client = createClient({ socket: { port, host: '127.0.0.1' }, ...options });
    client.on('error', () => {}); // connections are lost on purpose below
    await client.connect();
    return client;
}

for (const RESP of [2, 3]) {
    const name = (text) => `RESP${RESP}: ${text}`;

    test(name('handshake, values and options'), async () => {
        const client = await connected({ RESP, name: `node-redis-${RESP}`, database: RESP });
        await client.flushDb();
        assert.equal(await client.ping(), 'PONG');
        assert.equal(await client.clientGetName(), `node-redis-${RESP}`);
        assert.equal(await client.set('k', 'v', { expiration: { type: 'EX', value: 1000 }, condition: 'NX' }), 'OK');
        assert.equal(await client.set('k', 'w', { condition: 'NX' }), null);
        assert.equal(await client.get('missing'), null);
        assert.ok((await client.ttl('k')) > 990);
        assert.deepEqual(await client.mGet(['k', 'missing']), ['v', null]);
        const bytes = Buffer.from([0, 13, 10, 255]);
        const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
        await binary.set('binary', bytes);
        assert.deepEqual(await binary.get('binary'), bytes);
        await assert.rejects(client.incr('k'), /ERR value is not an integer or out of range/);
        const config = await client.configGet('maxclients');
        assert.ok(Number(config.maxclients) > 0);
        assert.match(await client.info('server'), /redis_version:7\./);
        await client.close();
    });

    test(name('commands issued together are one pipeline, answered in order'), async () => {
        const client = await connected({ RESP, database: RESP });
        await client.del('counter');
        const replies = await Promise.all(Array.from({ length: 1000 }, () => client.incr('counter')));
        assert.deepEqual(replies, Array.from({ length: 1000 }, (_, i) => i + 1));
        const batch = client.multi().set('a', 1).incr('a').get('a');
        assert.deepEqual(await batch.execAsPipeline(), ['OK', 2, '2']);
        await client.close();
    });

    test(name('scanIterator'), async () => {
        const client = await connected({ RESP, database: 10 + RESP });
        await client.flushDb();
        await client.mSet(Array.from({ length: 1000 }, (_, i) => [`scan:${i}`, String(i)]));
        const found = new Set();
        for await (const keys of client.scanIterator({ MATCH: 'scan:*', COUNT: 50 })) {
            for (const key of [].concat(keys)) found.add(key);
        }
        assert.equal(found.size, 1000);
        await client.close();
    });

    test(name('reconnects when its connection is killed'), async () => {
        const client = await connected({ RESP, database: 6 });
        const other = await connected({ RESP });
        await client.set('where', 'db6');
        const id = await client.clientId();
        const ready = new Promise((resolve) => client.once('ready', resolve));
        await other.sendCommand(['CLIENT', 'KILL', 'ID', String(id)]);
        await ready;
        assert.equal(await client.get('where'), 'db6');
        assert.notEqual(await client.clientId(), id);
        await client.close();
        await other.close();
    });
}
