from setuptools import setup

setup()  # setup.cfg has the metadata
