// The document that the server says it follows, judged by a validator, and followed: every answer of a few requests has
// the form that the document promises.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import SwaggerParser from '@apidevtools/swagger-parser';

const url = process.env.TEST_URL;
const headers = { Authorization: `Bearer ${process.env.TEST_TOKEN}` };
const ask = (method, path, body) =>
    fetch(url + path, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
        body: body === undefined ? undefined : JSON.stringify(body),
    });

// As much of JSON Schema as the document uses.
function fits(schema, value, where = '') {
    if (value === null) {
        assert.ok(schema.nullable || !(schema.type || schema.oneOf), `${where}: null`);
        return;
    }
    if (schema.oneOf) {
        const fitting = schema.oneOf.filter((s) => {
            try {
                fits(s, value, where);
                return true;
            } catch {
                return false;
            }
        });
        assert.equal(fitting.length, 1, `${where}: ${JSON.stringify(value)} fits ${fitting.length} of oneOf`);
        return;
    }
    const kinds = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', object: 'object', array: 'object' };
    if (!schema.type) return;
    assert.equal(typeof value, kinds[schema.type], where);
    assert.equal(Array.isArray(value), schema.type === 'array', where);
    if (schema.enum) assert.ok(schema.enum.includes(value), `${where}: ${value}`);
    if (schema.type === 'array') value.forEach((v, i) => fits(schema.items, v, `${where}[${i}]`));
    if (schema.type !== 'object') return;
    for (const name of schema.required ?? []) assert.ok(name in value, `${where} has no ${name}`);
    for (const [name, v] of Object.entries(value)) {
        if (schema.properties) assert.ok(name in schema.properties, `${where}.${name} is not in the document`);
        if (schema.properties) fits(schema.properties[name], v, `${where}.${name}`);
    }
}

test('the document is sound', async () => {
    const document = await (await ask('GET', '/openapi.json')).json();
    await SwaggerParser.validate(structuredClone(document));
});

test('answers are what the document promises', async () => {
    const document = await SwaggerParser.dereference(await (await ask('GET', '/openapi.json')).json());
    const check = async (method, pattern, path, body) => {
        const answer = await ask(method, path, body);
        const operation = document.paths[pattern][method.toLowerCase()];
        const promised = operation.responses[answer.status];
        assert.ok(promised, `${method} ${path}: ${answer.status} is not in the document`);
        const text = await answer.text();
        if (!promised.content) return assert.equal(text, '');
        const type = answer.headers.get('Content-Type').split(';')[0];
        assert.ok(promised.content[type], `${method} ${path}: ${type}`);
        if (type === 'application/json') fits(promised.content[type].schema, JSON.parse(text), `${method} ${path}`);
    };
    const key = '/keys/{key}';
    await check('POST', '/', '/', ['FLUSHALL']);
    await check('PUT', key, '/keys/s', { value: 'v', ttl: 100 });
    await check('GET', key, '/keys/s');
    await check('PUT', key, '/keys/h', { type: 'hash', value: { a: 1 } });
    await check('PUT', key, '/keys/z', { type: 'zset', value: { a: 1, b: 'inf' } });
    await check('PUT', key, '/keys/l', { type: 'list', value: ['x'] });
    await check('PUT', key, '/keys/t', { type: 'set', value: ['x'] });
    await check('PUT', key, '/keys/b%FF', { value: '/w==', encoding: 'base64' });
    for (const k of 'shzlt') await check('GET', key, `/keys/${k}`);
    await check('GET', key, '/keys/b%FF');
    await check('GET', key, '/keys/none');
    await check('PUT', key, '/keys/s', { colour: 'red' });
    await check('GET', '/keys', '/keys?limit=2');
    await check('GET', '/keys', '/keys');
    await check('GET', '/keys', '/keys?limit=0');
    await check('GET', '/keys', '/keys?values=true&reverse=true&from=a&to=zz&limit=4');
    await check('GET', `${key}/ttl`, '/keys/s/ttl');
    await check('GET', `${key}/ttl`, '/keys/h/ttl');
    await check('PUT', `${key}/ttl`, '/keys/h/ttl', { ttl: 5 });
    await check('DELETE', `${key}/ttl`, '/keys/h/ttl');
    await check('GET', `${key}/fields/{field}`, '/keys/h/fields/a');
    await check('PUT', `${key}/fields/{field}`, '/keys/h/fields/a', { value: 'x', ttl: 50 });
    await check('GET', `${key}/fields/{field}`, '/keys/s/fields/a');
    await check('DELETE', `${key}/fields/{field}`, '/keys/h/fields/none');
    await check('GET', `${key}/members/{member}`, '/keys/z/members/b');
    await check('GET', `${key}/members/{member}`, '/keys/t/members/x');
    await check('PUT', `${key}/members/{member}`, '/keys/z/members/c', { score: 1.5 });
    await check('POST', `${key}/items`, '/keys/l/items', { value: 'y' });
    await check('GET', `${key}/items/{index}`, '/keys/l/items/-1');
    await check('PUT', `${key}/items/{index}`, '/keys/l/items/0', { value: 'y' });
    await check('DELETE', `${key}/items/{index}`, '/keys/l/items/0');
    await check('POST', '/batch', '/batch', { operations: [{ op: 'put', key: 'k', value: 'v' }, { op: 'incr', key: 'n' }] });
    await check('POST', '/batch', '/batch', { operations: [{ op: 'incr', key: 'k' }] });
    await check('POST', '/batch', '/batch', { operations: [{ op: 'put', key: 'k', value: 'v', if_absent: true }] });
    await check('POST', '/batch', '/batch', { operations: [{ op: 'lpush', key: 'k', args: [1] }] });
    await check('POST', '/batch', '/batch', { operations: [{ op: 'fly', key: 'k' }] });
    const made = await (await ask('POST', '/batch', { operations: [{ op: 'delete', key: 'k' }], async: true })).json();
    await check('GET', '/batch/{id}', `/batch/${made.id}`);
    await check('GET', '/batch/{id}', '/batch/0');
    await check('POST', '/', '/', ['GET', 'none']);
    await check('POST', '/', '/', ['FLY']);
    await check('POST', '/pipeline', '/pipeline', [['SET', 'a', 1], ['LPUSH', 'a', 1]]);
    await check('POST', '/multi-exec', '/multi-exec', [['SET', 'a', 1], ['INCR', 'a']]);
    await check('POST', '/multi-exec', '/multi-exec', [['FLY']]);
    for (const path of ['/healthz', '/readyz', '/version', '/openapi.json', '/metrics']) await check('GET', path, path);
    await check('DELETE', key, '/keys/s');
    await check('DELETE', key, '/keys/s');
});
