// Two servers on one database whose replica stands still: what a program that knows nothing of Larder reads. TEST_URL's
// server reads from the primary, TEST_OTHER_URL's and TEST_OTHER_PORT's from any replica unless it is told otherwise.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Redis as Upstash } from '@upstash/redis';
import Redis from 'ioredis';

const upstash = (url, more) => new Upstash({ url, token: 'none', enableTelemetry: false, ...more });
const { TEST_URL: url, TEST_OTHER_URL: other, TEST_PORT: port, TEST_OTHER_PORT: otherPort } = process.env;

for (const enableAutoPipelining of [false, true]) {
    test(`@upstash/redis reads what it has written, pipelining ${enableAutoPipelining}`, async () => {
        const reader = upstash(other, { enableAutoPipelining });
        const careless = upstash(other, { enableAutoPipelining, readYourWrites: false });
        const writer = upstash(url, { enableAutoPipelining });
        assert.equal(await writer.set(`upstash:${enableAutoPipelining}:other`, 'unseen'), 'OK');
        const key = `upstash:${enableAutoPipelining}`;
        assert.equal(await reader.set(key, 'mine'), 'OK');
        assert.ok(reader.readYourWritesSyncToken);
        assert.equal(await reader.get(key), 'mine');
        assert.deepEqual(await reader.mget(key, 'none'), ['mine', null]);
        assert.equal(await careless.get(`${key}:other`), null);
        // Its token in the hands of another client, on another server.
        assert.equal(await writer.set(key, 'yours'), 'OK');
        const pipeline = writer.pipeline();
        pipeline.append(key, '!');
        pipeline.get(key);
        assert.deepEqual(await pipeline.exec(), [6, 'yours!']);
        reader.readYourWritesSyncToken = writer.readYourWritesSyncToken;
        assert.equal(await reader.get(key), 'yours!');
    });
}

test('ioredis chooses by READONLY, LARDER.CONSISTENCY and a token', async () => {
    const [writer, reader] = [new Redis(port), new Redis(otherPort)];
    try {
        assert.equal(await reader.call('LARDER.CONSISTENCY'), 'eventual');
        assert.equal(await writer.set('io', 'new'), 'OK');
        assert.equal(await writer.wait(1, 20), 0);
        assert.equal(await reader.get('io'), null);
        assert.equal(await reader.call('LARDER.CONSISTENCY', 'SESSION'), 'OK');
        assert.equal(await reader.call('LARDER.TOKEN', await writer.call('LARDER.TOKEN')), 'OK');
        assert.equal(await reader.get('io'), 'new');
        assert.equal(await reader.readonly(), 'OK');
        assert.equal(await reader.call('LARDER.CONSISTENCY'), 'eventual');
        assert.equal(await reader.call('LARDER.READ', 'STRONG', 'GET', 'io'), 'new');
        assert.equal(await reader.readwrite(), 'OK');
        assert.equal(await reader.get('io'), 'new');
        assert.deepEqual(await reader.multi().set('io', 'newer').get('io').exec(), [[null, 'OK'], [null, 'newer']]);
        await assert.rejects(reader.call('LARDER.TOKEN', 'none'), /^ReplyError: BADTOKEN /);
    } finally {
        writer.disconnect();
        reader.disconnect();
    }
});
