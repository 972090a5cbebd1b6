"""Mutual TLS: every node shows a certificate of the swarm's own authority, and asks for one.

A certificate admits to the network and no more: a frame's signature proves who wrote it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import ConfigError

if TYPE_CHECKING:
    from ssl import SSLContext

    from cryptography.x509 import Certificate


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of PEM files: the authority's certificate, this node's certificate and its private key. A node
    that dials checks that the peer's certificate names the dialled host."""

    authority: Path
    certificate: Path
    key: Path

    def check(self) -> Certificate:
        """The node's certificate; ConfigError if a file is not usable or the three do not belong together."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        pem = {}
        for what in ("authority", "certificate", "key"):
            path: Path = getattr(self, what)
            try:
                pem[what] = path.read_bytes()
            except OSError as error:
                text = f"TLS {what} {path} cannot be read: {error.strerror}; check --tls-{what}"
                raise ConfigError(text) from error
        found = {}
        for what in ("authority", "certificate"):
            try:
                found[what] = x509.load_pem_x509_certificates(pem[what])
            except ValueError as error:
                text = f"TLS {what} {getattr(self, what)} is not a PEM certificate; check --tls-{what}"
                raise ConfigError(text) from error
        try:
            key = load_pem_private_key(pem["key"], password=None)
        except (ValueError, TypeError) as error:
            text = f"TLS key {self.key} is not a PEM private key without password; check --tls-key"
            raise ConfigError(text) from error
        certificate = found["certificate"][0]
        if key.public_key() != certificate.public_key():
            raise ConfigError(
                f"TLS key {self.key} does not belong to certificate {self.certificate}: use files of one node"
            )
        return certificate

    def client_context(self) -> SSLContext:
        """The settings with which a program that uses Python's own TLS dials a peer."""
        import ssl

        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=str(self.authority))
        context.load_cert_chain(str(self.certificate), str(self.key))
        return context
