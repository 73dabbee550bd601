"""An authority of a test, and the certificates that it signs."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key in files (PEM)."""

    certificate: Path
    key: Path
    both: Path
    """The key, then the certificate: Kafka reads them from one file."""


@dataclass(frozen=True)
class Authority:
    """Signs certificates for servers of this machine, valid for some days."""

    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, folder: Path) -> Self:
        folder.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("authority of a test")
        built = _build(name, name, key.public_key(), timedelta(days=30))
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        made = cls(folder, built.sign(key, hashes.SHA256()), key)
        made.file.write_bytes(made.certificate.public_bytes(Encoding.PEM))
        return made

    @property
    def file(self) -> Path:
        """The certificate of the authority, which clients trust."""
        return self.folder / "authority.pem"

    def sign(self, name: str, valid: timedelta = timedelta(days=30)) -> Certificate:
        """A certificate of a server at 127.0.0.1, or of a client called `name`."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = _build(_name(name), self.certificate.subject, key.public_key(), valid)
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST)), x509.DNSName("localhost")])
        signed = built.add_extension(names, critical=False).sign(self.key, hashes.SHA256())
        certificate = signed.public_bytes(Encoding.PEM)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        made = Certificate(*(self.folder / f"{name}.{kind}.pem" for kind in ("certificate", "key", "both")))
        made.certificate.write_bytes(certificate)
        made.key.write_bytes(private)
        made.both.write_bytes(private + certificate)
        return made


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _build(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + valid)
    )
