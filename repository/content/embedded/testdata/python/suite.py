"""Tests of the emulator with Microsoft's client for Python, which compares the case of headers.

MESSAGEHUB is the program. The client is azure-storage-blob 12.
"""

import datetime
import os
import subprocess
import unittest

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, ContainerClient, ContainerSasPermissions, generate_container_sas


class Emulator(unittest.TestCase):
    def setUp(self):
        self.emulator = subprocess.Popen(
            [os.environ["MESSAGEHUB"], "emulator", "blob", "--in-memory", "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        connection = self.emulator.stdout.readline().strip().split("connection string ")[1]
        self.service = BlobServiceClient.from_connection_string(connection)
        self.container = self.service.create_container("suite", metadata={"myKey": "1"})

    def tearDown(self):
        self.service.close()
        self.emulator.terminate()
        self.emulator.wait()
        self.emulator.stdout.close()

    def test_metadata_keeps_its_names(self):
        self.assertEqual({"myKey": "1"}, self.container.get_container_properties().metadata)
        blob = self.container.upload_blob("a/b", b"data", metadata={"myKey": "1", "Other": "2"})
        self.assertEqual({"myKey": "1", "Other": "2"}, blob.get_blob_properties().metadata)
        blob.set_blob_metadata({"newKey": "3"})
        self.assertEqual({"newKey": "3"}, blob.get_blob_properties().metadata)
        self.assertEqual(b"data", blob.download_blob().readall())

    def test_lists(self):
        for name in ["a", "b/1", "b/2"]:
            self.container.upload_blob(name, b"")
        self.assertEqual(["a", "b/"], sorted(item.name for item in self.container.walk_blobs()))
        self.assertEqual(["a", "b/1", "b/2"], [item.name for item in self.container.list_blobs()])
        self.assertEqual(["suite"], [item.name for item in self.service.list_containers()])
        self.container.delete_container()
        self.assertFalse(self.container.exists())

    def test_copy(self):
        blob = self.container.upload_blob("from", b"data")
        copied = self.container.get_blob_client("to")
        self.assertEqual("success", copied.start_copy_from_url(blob.url)["copy_status"])
        self.assertEqual(b"data", copied.download_blob().readall())

    def test_shared_access(self):
        self.container.upload_blob("x", b"data")
        link = generate_container_sas(
            self.service.account_name, "suite", account_key=self.service.credential.account_key,
            permission=ContainerSasPermissions(read=True, list=True),
            expiry=datetime.datetime.utcnow() + datetime.timedelta(hours=1))
        with ContainerClient.from_container_url(self.container.url + "?" + link) as linked:
            self.assertEqual(["x"], [item.name for item in linked.list_blobs()])
            self.assertEqual(b"data", linked.download_blob("x").readall())
            with self.assertRaises(HttpResponseError) as refused:
                linked.delete_blob("x")
        self.assertEqual("AuthorizationPermissionMismatch", refused.exception.error_code)


if __name__ == "__main__":
    unittest.main()
