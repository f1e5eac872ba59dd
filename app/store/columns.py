"""Columns that many tables have."""

from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, Text
from sqlmodel import Field


def instant(*, nullable: bool = False) -> Any:  # noqa: ANN401 - SQLModel's Field is Any too
    return Field(sa_column=Column(DateTime(timezone=True), nullable=nullable))


def text(*, nullable: bool = False, primary_key: bool = False) -> Any:  # noqa: ANN401
    return Field(sa_column=Column(Text, nullable=nullable, primary_key=primary_key))


def tokens() -> Any:  # noqa: ANN401
    return Field(sa_column=Column(BigInteger, nullable=True))
