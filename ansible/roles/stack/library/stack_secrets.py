#!/usr/bin/python
"""A site's secrets, on the controller: made once, kept in a folder for its owner alone.

    ca.crt, ca.key, password, password.bcrypt, gpu1.crt, gpu1.key, gpu1.password, gpu1.password.bcrypt

A host's certificate is made anew where the addresses that it is called by changed, or where it ends within a month.
"""

import datetime
import ipaddress
import os
import secrets
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: stack_secrets
short_description: Make a site's certificates and passwords where there are none yet
options:
  folder: {description: The site's folder., type: path, required: true}
  hosts: {description: Each host's names and addresses., type: dict, required: true}
author: [TrainVitals]
"""

DAYS = 3650
MONTH = datetime.timedelta(days=30)


class Folder:
    """Writes whole files that their owner alone may read, or in check mode none."""

    def __init__(self, path, is_check):
        self.path, self.is_check, self.changed = path, is_check, []
        if not is_check:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.chmod(0o700)

    def write(self, name, content):
        self.changed.append(name)
        if self.is_check:
            return
        unfinished = self.path / f"{name}.unfinished"
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        unfinished.replace(self.path / name)

    def read(self, name):
        path = self.path / name
        return path.read_bytes() if path.exists() else b""


def password(folder, name):
    import bcrypt

    if not folder.read(f"{name}.bcrypt"):
        made = secrets.token_urlsafe(32).encode()
        folder.write(name, made)
        # Last: where it is there, the password is too, and is its own.
        folder.write(f"{name}.bcrypt", bcrypt.hashpw(made, bcrypt.gensalt(10)))


def authority(folder):
    """Its key and certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    if not folder.read("ca.crt"):
        key = _new_key()
        name = _named("TrainVitals site")
        made = (_begun(name, name, key).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
                .add_extension(_usage(signs=True), critical=True))  # fmt: skip
        folder.write("ca.key", _pem(key))
        certificate = _signed(made, key)
        folder.write("ca.crt", certificate.public_bytes(serialization.Encoding.PEM))
        return key, certificate
    return (serialization.load_pem_private_key(folder.read("ca.key"), None),
            x509.load_pem_x509_certificate(folder.read("ca.crt")))  # fmt: skip


def certificate(folder, host, called, key, issuer):
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    names = x509.SubjectAlternativeName([_name(one) for one in called])
    if _holds(folder.read(f"{host}.crt"), names, issuer):
        return
    own = _new_key()
    extended = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH])
    made = (_begun(_named(host), issuer.subject, own).add_extension(names, critical=False)
            .add_extension(_usage(signs=False), critical=True).add_extension(extended, critical=False))  # fmt: skip
    folder.write(f"{host}.key", _pem(own))
    folder.write(f"{host}.crt", _signed(made, key).public_bytes(serialization.Encoding.PEM))


def _holds(pem, names, issuer):
    from cryptography import x509

    if not pem:
        return False
    found = x509.load_pem_x509_certificate(pem)
    told = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    try:
        found.verify_directly_issued_by(issuer)
    except Exception:
        return False
    return told == names and found.not_valid_after_utc - _now() > MONTH


def _now():
    return datetime.datetime.now(datetime.timezone.utc)


def _new_key():
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _pem(key):
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption())  # fmt: skip


def _named(text):
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text[:64])])


def _name(text):
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _usage(*, signs):
    from cryptography import x509

    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, content_commitment=False,
                         key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
                         decipher_only=False)  # fmt: skip


def _begun(name, issuer, key):
    from cryptography import x509

    # A host whose clock is a little behind takes it too.
    begins = _now() - datetime.timedelta(hours=1)
    return (x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(begins)
            .not_valid_after(begins + datetime.timedelta(days=DAYS)))  # fmt: skip


def _signed(builder, key):
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def main():
    module = AnsibleModule({"folder": {"type": "path", "required": True, "no_log": False},
                            "hosts": {"type": "dict", "required": True}}, supports_check_mode=True)  # fmt: skip
    folder = Folder(Path(module.params["folder"]), module.check_mode)
    try:
        password(folder, "password")
        key, issuer = authority(folder)
        for host, called in module.params["hosts"].items():
            certificate(folder, host, called, key, issuer)
            password(folder, f"{host}.password")
    except ImportError as error:
        module.fail_json(msg=f"{error.name} is not installed on this machine: pip install -r requirements/deploy.txt")
    except OSError as error:
        module.fail_json(msg=f"{error.filename}: {error.strerror}: the site's secrets are kept there")
    module.exit_json(changed=bool(folder.changed), made=folder.changed)


if __name__ == "__main__":
    main()
