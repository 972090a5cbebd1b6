"""Mutual TLS: every node shows a certificate of the swarm's own authority, and asks for one.

`create_authority` and `issue_certificate` make what a swarm needs: ed25519 keys, no outside program. The
authority's key is needed only to issue; nodes get its certificate and their own pair. A certificate admits to
the network and no more: who wrote a frame is proven by the frame's signature.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.x509 import CertificateBuilder, KeyUsage, Name

CLOCK_SKEW = datetime.timedelta(hours=1)
"""New certificates are valid from this long ago, because clocks of other machines differ."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of PEM files: the authority's certificate, this node's certificate and its private key.

    With `verify_names` a node that dials checks that the certificate it is shown names the host it dialled.
    """

    authority: Path
    certificate: Path
    key: Path
    verify_names: bool = True

    def check(self) -> None:
        """Raises ConfigError where a file is missing, unreadable or not what it should be."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        pem = {}
        for what in ("authority", "certificate", "key"):
            path: Path = getattr(self, what)
            try:
                pem[what] = path.read_bytes()
            except OSError as error:
                raise ConfigError(f"TLS {what} {path} cannot be read: {error.strerror}") from error
        for what in ("authority", "certificate"):
            try:
                x509.load_pem_x509_certificates(pem[what])
            except ValueError as error:
                raise ConfigError(f"TLS {what} {getattr(self, what)} is not a PEM certificate") from error
        try:
            key = load_pem_private_key(pem["key"], password=None)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"TLS key {self.key} is not a PEM private key without password") from error
        if key.public_key() != x509.load_pem_x509_certificates(pem["certificate"])[0].public_key():
            raise ConfigError(f"TLS key {self.key} does not belong to certificate {self.certificate}")


def create_authority(folder: Path, name: str = "shoal swarm", days: int = 3650) -> Path:
    """Makes `folder`/authority.pem and `folder`/authority.key; returns the path of the certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding

    key = Ed25519PrivateKey.generate()
    subject = _name(name)
    certificate = (
        _builder(subject, subject, key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, None)
    )
    folder.mkdir(parents=True, exist_ok=True)
    _write_key(folder / "authority.key", key)
    path = folder / "authority.pem"
    path.write_bytes(certificate.public_bytes(Encoding.PEM))
    return path


def issue_certificate(
    authority: Path, folder: Path, name: str, hosts: Sequence[str] = (), days: int = 365
) -> TlsFiles:
    """Makes `folder`/`name`.pem and `folder`/`name`.key, signed by the authority whose key lies beside its
    certificate. `hosts` are the names and IP addresses at which the node listens; none for one that only
    dials out. `name` is best the node's id, so that channel and author can be compared."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority_key = load_pem_private_key(authority.with_suffix(".key").read_bytes(), password=None)
    if not isinstance(authority_key, Ed25519PrivateKey):
        raise ConfigError(f"{authority.with_suffix('.key')} is not an ed25519 key; use create_authority")
    authority_certificate = x509.load_pem_x509_certificate(authority.read_bytes())
    key = Ed25519PrivateKey.generate()
    alternatives: list[x509.GeneralName] = []
    for host in hosts or (name,):
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(host.strip("[]"))))
        except ValueError:
            alternatives.append(x509.DNSName(host))
    certificate = (
        _builder(_name(name), authority_certificate.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, None)
    )
    folder.mkdir(parents=True, exist_ok=True)
    files = TlsFiles(authority, folder / f"{name}.pem", folder / f"{name}.key")
    _write_key(files.key, key)
    files.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    return files


def _name(text: str) -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject: Name, issuer: Name, key: Ed25519PrivateKey, days: int) -> CertificateBuilder:
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: Ed25519PrivateKey) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    # Created private, never made private afterwards: there is no moment at which others can read it.
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ConfigError(
            f"{path} exists and is not overwritten; remove it or choose another folder"
        ) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
