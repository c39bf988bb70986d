// Keyv on @keyv/redis: the test suite that its makers publish for every store, and what is special to this one.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';

import KeyvRedis from '@keyv/redis';
import keyvTestSuite, { keyvIteratorTests } from '@keyv/test-suite';
import Keyv from 'keyv';
import { createClient } from 'redis';

const uri = `redis://127.0.0.1:${process.env.TEST_PORT}`;
const stores = [];

function store() {
    const made = new KeyvRedis(uri);
    stores.push(made);
    return made;
}
const client = createClient({ url: uri });
before(() => client.connect());
after(() => Promise.all([client.close(), ...stores.map((s) => s.disconnect(true))]));

// The suite is written for another runner: here is what it uses of that.
function expect(actual) {
    const checks = (right) => ({
        toBe: (value) => right(Object.is(actual, value), value),
        toEqual: (value) => right(isEqual(actual, value), value),
        toBeTruthy: () => right(Boolean(actual), 'truthy'),
        toBeFalsy: () => right(!actual, 'falsy'),
        toBeNull: () => right(actual === null, null),
        toBeUndefined: () => right(actual === undefined, undefined),
        toBeDefined: () => right(actual !== undefined, 'defined'),
    });
    const is = checks((yes, wanted) => assert.ok(yes, `${actual} is not ${wanted}`));
    is.not = checks((yes, unwanted) => assert.ok(!yes, `${actual} is ${unwanted}`));
    return is;
}
expect.assertions = () => {};

function isEqual(a, b) {
    try {
        assert.deepEqual(a, b);
        return true;
    } catch {
        return false;
    }
}

const runner = { it: (name, run) => test(name, () => run({ expect })), beforeEach, afterEach };

describe('published suite', () => keyvTestSuite(runner, Keyv, store));
describe('published suite, iterators', () => keyvIteratorTests(runner, Keyv, store));

describe('namespaces', () => {
    beforeEach(() => client.flushAll());

    test('are apart, and cleared apart', async () => {
        const [a, b] = ['a', 'b'].map((namespace) => new Keyv({ store: store(), namespace }));
        await Promise.all(Array.from({ length: 300 }, (_, i) => a.set(`k${i}`, { i })));
        await b.set('k1', 'other');
        assert.deepEqual(await a.get('k1'), { i: 1 });
        assert.equal(await b.get('k1'), 'other');
        await a.clear();
        assert.equal(await a.get('k1'), undefined);
        assert.equal(await b.get('k1'), 'other');
        assert.equal(await client.dbSize(), 1);
    });

    test('are walked in batches', async () => {
        const walked = new Keyv({ store: store(), namespace: 'walked' });
        await new Keyv({ store: store(), namespace: 'other' }).set('x', 1);
        await Promise.all(Array.from({ length: 500 }, (_, i) => walked.set(`k${i}`, i)));
        const found = new Map();
        for await (const [key, value] of walked.iterator()) found.set(key, value);
        assert.equal(found.size, 500);
        assert.equal(found.get('k77'), 77);
    });
});

test('times to live are kept by the server', async () => {
    const keyv = new Keyv({ store: store(), namespace: 'ttl' });
    await keyv.set('long', 'v', 100_000);
    await keyv.set('forever', 'v');
    await keyv.set('brief', 'v', 60);
    const [long] = await client.keys('*long');
    const [forever] = await client.keys('*forever');
    assert.ok((await client.pTTL(long)) > 90_000);
    assert.equal(await client.pTTL(forever), -1);
    while ((await client.keys('*brief')).length) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(await keyv.get('brief'), undefined);
});

test('several at once', async () => {
    const keyv = new Keyv({ store: store(), namespace: 'many' });
    await keyv.setMany([
        { key: 'a', value: 1 },
        { key: 'b', value: 2, ttl: 100_000 },
    ]);
    assert.deepEqual(await keyv.getMany(['a', 'none', 'b']), [1, undefined, 2]);
    assert.deepEqual(await keyv.hasMany(['a', 'none']), [true, false]);
    assert.equal(await keyv.deleteMany(['a', 'b']), true);
    assert.equal(await keyv.has('a'), false);
});
