// Sessions of express-session kept by connect-redis: the store by itself, and behind an HTTP server.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';

import { RedisStore } from 'connect-redis';
import session from 'express-session';
import { createClient } from 'redis';

const port = Number(process.env.TEST_PORT);
let client;
let store;

before(async () => {
    client = createClient({ socket: { port, host: '127.0.0.1' } });
    await client.connect();
    store = new RedisStore({ client });
});
beforeEach(() => client.flushAll());
after(() => client.close());

const inSeconds = (seconds) => new Date(Date.now() + seconds * 1000);

test('set, get, touch and destroy', async () => {
    const data = { user: 'ä', cookie: { originalMaxAge: null } };
    await store.set('123', data);
    assert.deepEqual(await store.get('123'), data);
    assert.ok((await client.ttl('sess:123')) > 86390);
    await store.set('456', { cookie: { originalMaxAge: null, expires: inSeconds(60) } });
    assert.ok((await client.ttl('sess:456')) <= 60);
    await store.touch('456', { cookie: { originalMaxAge: null, expires: inSeconds(90) } });
    assert.ok((await client.ttl('sess:456')) > 60);
    assert.deepEqual((await store.ids()).sort(), ['123', '456']);
    assert.deepEqual((await store.all()).map((s) => s.id).sort(), ['123', '456']);
    await store.destroy('456');
    assert.equal(await store.length(), 1);
    assert.ok(!(await store.get('456')));
    await store.destroy('456');
});

test('a session whose time is over is gone', async () => {
    await store.set('brief', { cookie: { originalMaxAge: null, expires: inSeconds(60) } });
    await store.set('brief', { cookie: { originalMaxAge: null, expires: inSeconds(-60) } });
    assert.equal(await store.length(), 0);
    await store.set('brief', { cookie: { originalMaxAge: null, expires: inSeconds(1) } });
    while (await store.get('brief')) await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(await store.ids(), []);
});

test('many sessions are counted and cleared, other keys stay', async () => {
    await client.set('other', '1');
    const cookie = { originalMaxAge: null, expires: inSeconds(1000) };
    await Promise.all(Array.from({ length: 1000 }, (_, i) => store.set(`s${i}`, { cookie, number: i })));
    assert.equal(await store.length(), 1000);
    const numbers = (await store.all()).map((s) => s.number).sort((a, b) => a - b);
    assert.deepEqual(numbers, Array.from({ length: 1000 }, (_, i) => i));
    await store.clear();
    assert.equal(await store.length(), 0);
    assert.equal(await client.get('other'), '1');
});

test('visits counted over HTTP, by browser, until logout', async () => {
    const sessions = session({ store, secret: 'tests', resave: false, saveUninitialized: false, cookie: { maxAge: 60000 } });
    const server = createServer((request, response) => {
        sessions(request, response, async (error) => {
            if (error) return response.writeHead(500).end(String(error));
            if (request.url === '/logout') return request.session.destroy(() => response.end('bye'));
            request.session.visits = (request.session.visits ?? 0) + 1;
            response.end(String(request.session.visits));
        });
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const visit = async (browser, path = '/') => {
        const url = `http://127.0.0.1:${server.address().port}${path}`;
        const response = await fetch(url, { headers: browser.cookie ? { cookie: browser.cookie } : {} });
        browser.cookie = response.headers.get('set-cookie')?.split(';')[0] ?? browser.cookie;
        return response.text();
    };
    try {
        const [one, other] = [{}, {}];
        assert.deepEqual([await visit(one), await visit(one), await visit(other), await visit(one)], ['1', '2', '1', '3']);
        assert.equal(await store.length(), 2);
        assert.equal(await visit(one, '/logout'), 'bye');
        assert.equal(await store.length(), 1);
        assert.equal(await visit(one), '1');
        assert.equal(await visit(other), '2');
    } finally {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
    }
});
