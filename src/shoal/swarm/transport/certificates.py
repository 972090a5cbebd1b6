"""Certificates for a swarm with TLS: its private authority, and a certificate and key for each node.

All keys are ed25519. The authority's key is needed only to issue certificates. Guarantee: private keys have
mode 0600 from the moment they exist, and no file is ever overwritten.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from shoal.errors import ConfigError
from shoal.swarm.transport.tls import TlsFiles

AUTHORITY = "authority"
CLOCK_SKEW = datetime.timedelta(hours=1)  # a certificate is valid from this long ago: clocks differ
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Issued(NamedTuple):
    """The files of one node; `is_new` is False if they were there before."""

    name: str
    files: TlsFiles
    is_new: bool


def issue_certificates(folder: Path, nodes: Mapping[str, Sequence[str]]) -> list[Issued]:
    """The files of each node in `folder`, made if they are missing. `nodes` maps the name of a node to the
    hosts at which it listens. The authority is made by the first call and used by all later ones."""
    for name in nodes:
        if not _NAME.fullmatch(name) or name == AUTHORITY:
            raise ConfigError(
                f"{name!r} cannot be the name of a node's files: use letters, digits, `.`, `_` and `-`"
            )
    authority = folder / f"{AUTHORITY}.pem"
    if not _pair_exists(authority):
        create_authority(folder)
    issued = []
    for name, hosts in nodes.items():
        files = TlsFiles(authority, folder / f"{name}.pem", folder / f"{name}.key")
        is_new = not _pair_exists(files.certificate)
        if is_new:
            issue_certificate(authority, folder, name, hosts)
        issued.append(Issued(name, files, is_new))
    return issued


def create_authority(folder: Path, name: str = "shoal swarm", days: int = 3650) -> Path:
    """Makes `folder`/authority.pem and `folder`/authority.key; returns the path of the certificate."""
    key = Ed25519PrivateKey.generate()
    certificate = (
        _builder(_name(name), _name(name), key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, None)
    )
    return _write_pair(folder / f"{AUTHORITY}.pem", certificate, key)


def issue_certificate(
    authority: Path, folder: Path, name: str, hosts: Sequence[str] = (), days: int = 365
) -> TlsFiles:
    """Makes `folder`/`name`.pem and .key, signed by the authority whose key lies beside its certificate.
    `hosts` are the names and IP addresses at which the node listens; none if it only dials out."""
    try:
        authority_key = load_pem_private_key(authority.with_suffix(".key").read_bytes(), password=None)
        issuer = x509.load_pem_x509_certificate(authority.read_bytes()).subject
    except OSError as error:
        raise ConfigError(f"the authority in {authority.parent} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"the authority in {authority.parent} is damaged: make one in a new folder"
        ) from error
    if not isinstance(authority_key, Ed25519PrivateKey):
        raise ConfigError(f"{authority.with_suffix('.key')} is not an ed25519 key; use create_authority")
    key = Ed25519PrivateKey.generate()
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        _builder(_name(name), issuer, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName(list(map(_host, hosts or (name,)))), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, None)
    )
    path = _write_pair(folder / f"{name}.pem", certificate, key)
    return TlsFiles(authority, path, folder / f"{name}.key")


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return x509.DNSName(host)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Ed25519PrivateKey, days: int
) -> x509.CertificateBuilder:
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


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    never = "content_commitment key_encipherment data_encipherment key_agreement encipher_only decipher_only"
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        **dict.fromkeys(never.split(), False),
    )


def _pair_exists(certificate: Path) -> bool:
    """Whether certificate and key are there; ConfigError if only one of them is."""
    key = certificate.with_suffix(".key")
    if certificate.exists() != key.exists():
        there, missing = (certificate, key) if certificate.exists() else (key, certificate)
        raise ConfigError(f"{there} exists without {missing.name}: restore that, or remove {there.name}")
    return key.exists()


def _write_pair(path: Path, certificate: x509.Certificate, key: Ed25519PrivateKey) -> Path:
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _write_new(path.with_suffix(".key"), private, 0o600)
    _write_new(path, certificate.public_bytes(Encoding.PEM), 0o644)
    return path


def _write_new(path: Path, content: bytes, mode: int) -> None:
    # Created with its mode, never changed to it: at no moment can others read a key.
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
    except FileExistsError:
        raise ConfigError(
            f"{path} exists and is not overwritten; remove it or choose another folder"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
