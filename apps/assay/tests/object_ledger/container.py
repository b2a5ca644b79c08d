"""Makes containers in an account of Azure Blob Storage: URL of the account, its name, then names of containers. The account's
key is in ACCOUNT_KEY. What is signed is described at
https://learn.microsoft.com/en-us/rest/api/storageservices/authorize-with-shared-key"""
import base64, hashlib, hmac, os, sys, urllib.request
from email.utils import formatdate

url, account, *containers = sys.argv[1:]
key = base64.b64decode(os.environ["ACCOUNT_KEY"])
for container in containers:
    date, version = formatdate(usegmt=True), "2021-12-02"
    named = f"x-ms-date:{date}\nx-ms-version:{version}\n"
    # A path-style endpoint has the account in the path, too.
    resource = f"/{account}/{account}/{container}\nrestype:container"
    signed = "PUT" + "\n" * 12 + named + resource
    signature = base64.b64encode(hmac.new(key, signed.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": date, "x-ms-version": version, "Content-Length": "0",
               "Authorization": f"SharedKey {account}:{signature}"}
    request = urllib.request.Request(f"{url}/{container}?restype=container", method="PUT", headers=headers)
    assert urllib.request.urlopen(request, timeout=30).status == 201
