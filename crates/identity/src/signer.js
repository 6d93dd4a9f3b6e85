// Makes real keys and signs whatever it is told to, for the tests: another implementation than the one under test.
// A line of JSON in, a line out. First line out: the public keys, as a set.
const crypto = require('crypto');
const b64 = (bytes) => Buffer.from(bytes).toString('base64url');
const keys = {
  rsa: crypto.generateKeyPairSync('rsa', { modulusLength: 2048 }),
  rsa2: crypto.generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ec: crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ed: crypto.generateKeyPairSync('ed25519'),
};
const secret = crypto.randomBytes(32);
const jwk = (name, alg) => ({ ...keys[name].publicKey.export({ format: 'jwk' }), kid: name, alg, use: 'sig' });
console.log(JSON.stringify({
  rsa: jwk('rsa', 'RS256'), rsa2: jwk('rsa2', 'RS256'), ec: jwk('ec', 'ES256'), ed: jwk('ed', 'EdDSA'),
  oct: { kty: 'oct', kid: 'oct', alg: 'HS256', k: b64(secret) },
  pem: keys.rsa.publicKey.export({ format: 'pem', type: 'spki' }),
}));
const sign = {
  rsa: (text) => crypto.sign('sha256', text, keys.rsa.privateKey),
  rsa2: (text) => crypto.sign('sha256', text, keys.rsa2.privateKey),
  ec: (text) => crypto.sign('sha256', text, { key: keys.ec.privateKey, dsaEncoding: 'ieee-p1363' }),
  ed: (text) => crypto.sign(null, text, keys.ed.privateKey),
  oct: (text) => crypto.createHmac('sha256', secret).update(text).digest(),
  none: () => Buffer.alloc(0),
  // The classic: the public key, which everybody has, taken for a secret.
  'pem-as-secret': (text) =>
    crypto.createHmac('sha256', keys.rsa.publicKey.export({ format: 'pem', type: 'spki' })).update(text).digest(),
  'modulus-as-secret': (text) =>
    crypto.createHmac('sha256', Buffer.from(keys.rsa.publicKey.export({ format: 'jwk' }).n, 'base64url')).update(text).digest(),
};
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { key, header, payload } = JSON.parse(line);
  const text = b64(header) + '.' + b64(payload);
  console.log(text + '.' + b64(sign[key](Buffer.from(text))));
});
