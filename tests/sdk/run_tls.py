"""A Python client at a server with TLS and client certificates, as `server run` serves it.

The client that shows a certificate of the right authority starts a workflow; one that shows another
certificate, or none, has no connection.
"""

import asyncio
import json
import pathlib
import subprocess
import sys
import tempfile

import server
from run_and_exit import end
from server import BINARY, PYTHON_PACKAGES, SECONDS_MAX, environment, must_end


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def authority(folder, name):
    openssl(
        folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2",
        "-subj", f"/CN={name}",
    )  # fmt: skip


def certificate(folder, name, by, extension="basicConstraints=CA:FALSE"):
    (folder / "extension").write_text(extension)
    openssl(
        folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}",
    )  # fmt: skip
    openssl(
        folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.pem", "-CAkey", f"{by}.key",
        "-CAcreateserial", "-out", f"{name}.pem", "-days", "2", "-extfile", "extension",
    )  # fmt: skip


def make_certificates(folder):
    authority(folder, "ours")
    authority(folder, "theirs")
    certificate(folder, "server", "ours", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    certificate(folder, "ann", "ours")
    certificate(folder, "eve", "theirs")


async def start_workflow(address, folder, who):
    """The id of the run; raises if there is no connection."""
    from temporalio.client import Client
    from temporalio.service import TLSConfig

    shown = {}
    if who:
        shown = {
            "client_cert": (folder / f"{who}.pem").read_bytes(),
            "client_private_key": (folder / f"{who}.key").read_bytes(),
        }
    tls = TLSConfig(server_root_ca_cert=(folder / "ours.pem").read_bytes(), **shown)
    client = await asyncio.wait_for(Client.connect(address, tls=tls, namespace="shop"), 20)
    handle = await client.start_workflow("Order", id=f"of-{who}", task_queue="orders")
    return handle.first_execution_run_id


def is_refused(address, folder, who):
    try:
        asyncio.run(start_workflow(address, folder, who))
    except (RuntimeError, asyncio.TimeoutError):
        return True
    return False


def main():
    server.skip_without_python_packages()
    sys.path.insert(0, str(PYTHON_PACKAGES))
    with tempfile.TemporaryDirectory(prefix="holdfast-sdk-") as parent:
        folder = pathlib.Path(parent)
        make_certificates(folder)
        (folder / "server.yaml").write_text(
            "db: sqlite:server.db?create=1\n"
            "server:\n"
            "  address: 127.0.0.1:0\n"
            "  namespaces: {shop: {retention: 24h}}\n"
            "  tls:\n"
            "    certificate_file: server.pem\n"
            "    key_file: server.key\n"
            "    client_authorities_file: ours.pem\n"
        )
        process = subprocess.Popen(
            [BINARY, "server", "run", "--config", "server.yaml", "--json"],
            cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        try:
            printed = json.loads(process.stdout.readline())
            assert printed["tls"] == "mutual", printed
            address = f"localhost:{printed['port']}"
            run_id = asyncio.run(start_workflow(address, folder, "ann"))
            assert run_id, "the workflow has no run"
            for who in ("eve", None):
                assert is_refused(address, folder, who), f"{who} has a connection"
            process.terminate()
            must_end(process, 0, SECONDS_MAX)
        finally:
            process.kill()
            process.wait()
    print("TLS: 1 client with a connection, 2 without")


if __name__ == "__main__":
    main()
    end()
