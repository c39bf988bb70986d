"""Certificates for tests, made with the openssl command when they are needed."""

import pathlib
import ssl
import subprocess


def openssl(*args, **more):
    done = subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Pair:
    """A certificate and its key, as files."""

    def __init__(self, folder, name):
        self.cert = str(pathlib.Path(folder) / f"{name}.crt")
        self.key = str(pathlib.Path(folder) / f"{name}.key")


class Authority(Pair):
    """Signs certificates for localhost. Its own is `cert`."""

    def __init__(self, folder, name="ca"):
        super().__init__(folder, name)
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "30",
            "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert,
        )  # fmt: skip

    def issue(self, name, *, password=None, days=30, names="DNS:localhost,IP:127.0.0.1"):
        pair = Pair(self.folder, name)
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\n")
        openssl(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", f"/CN={name}",
            "-keyout", pair.key, "-out", request, *(["-passout", f"pass:{password}"] if password else ["-noenc"]),
        )  # fmt: skip
        openssl(
            "x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial",
            "-days", days, "-extfile", extensions, "-out", pair.cert,
        )  # fmt: skip
        return pair

    def context(self, client=None, *, lowest=ssl.TLSVersion.TLSv1_2, highest=ssl.TLSVersion.TLSv1_3):
        """What a client that trusts this authority connects with; `client` is the pair that it shows."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.cert)
        context.minimum_version, context.maximum_version = lowest, highest
        if client:
            context.load_cert_chain(client.cert, client.key)
        return context
